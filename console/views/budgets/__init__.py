"""Budgets: their limits, spending and alerts."""
