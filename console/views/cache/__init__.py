"""What engines keep of a tenant's prompts: how often it is hit, and how it is forgotten."""
