"""Budgets: how much of each is spent, who was told, and their limits."""
