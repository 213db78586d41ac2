"""First steps: from signing in to a completion in one's editor."""
