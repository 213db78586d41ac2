"""SCIM 2.0 over HTTP, for identity providers. tenants.identity.scim implements the operations."""
