"""Members of tenants."""
