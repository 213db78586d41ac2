"""E-mail domains of tenants. A DNS record proves that a domain belongs to the tenant."""
