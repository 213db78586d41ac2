"""The layout of a prompt: its segments, their order and their token budgets."""
