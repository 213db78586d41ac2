"""What a tenant spends: day by day, and what this month has come to."""
