"""How a tenant's people sign in: its identity provider, and whether a second factor is wanted."""
