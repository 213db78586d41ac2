"""SCIM 2.0 over HTTP, for identity providers. tenants.identity.scim implements the operations."""

import tenants.identity.scim  # noqa: F401  # imports scim2_models quickly
