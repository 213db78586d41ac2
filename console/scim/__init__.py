"""SCIM 2.0 over HTTP, for identity providers. tenants.identity.scim implements the operations."""

# This package imports scim2_models in the quick way, before the modules here import it.
import tenants.identity.scim  # noqa: F401
