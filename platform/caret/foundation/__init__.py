"""Infrastructure for both planes, without knowledge of tenants or completions."""
