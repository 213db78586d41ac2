"""The web console and the REST API: the HTTP side of `tenants`' operations and queries."""
