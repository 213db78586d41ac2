"""SCIM 2.0 (RFC 7643, 7644): users and groups provisioned by identity providers."""
