"""Small pieces without knowledge of tenants or completions, on which both planes stand."""
