"""Policy overrides of teams and users. They can only restrict the tenant's policy."""
