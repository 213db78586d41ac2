"""Time limits and bulkheads for blocking calls."""
