"""Shared kernel of the tenants' domains. It knows none of them."""
