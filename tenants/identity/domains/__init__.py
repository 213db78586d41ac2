"""Domains of e-mail addresses, shown to be a tenant's own by a record in the DNS."""
