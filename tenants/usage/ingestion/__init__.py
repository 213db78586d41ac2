"""Usage records from the Redis stream into Postgres, each exactly once."""
