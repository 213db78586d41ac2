"""Usage aggregated by hour and by day."""
