"""E-mail domains that a DNS record proves to be a tenant's own."""
