"""SCIM 2.0 over HTTP, for identity providers; what it does is in tenants.identity.scim."""
