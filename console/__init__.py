"""The web console and the REST API: HTTP to `tenants`' operations and queries, and back."""
