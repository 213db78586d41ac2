"""A tenant's sign-in settings: its identity provider, and whether a second factor is required."""
