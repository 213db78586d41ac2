"""API keys: list, creation, details, rotation, revocation."""
