"""SCIM 2.0 over HTTP, for identity providers. tenants.identity.scim implements the operations."""

# This package shortens the import of scim2_models, so the modules here must import it first.
import tenants.identity.scim  # noqa: F401
