"""A tenant's spending by day, and its total this month."""
