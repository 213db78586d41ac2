"""What carries snapshots into a region, and usage home from it."""
