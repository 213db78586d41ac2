"""The audit trail: search, before and after, and whether it is whole."""
