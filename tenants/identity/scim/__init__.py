"""SCIM 2.0 (RFC 7643, 7644): people and groups as identity providers keep them."""
