"""Rate limits, token quotas and hard budgets, leased from Redis."""
