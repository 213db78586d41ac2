"""Ingestion of usage records from the Redis stream into Postgres, each exactly once."""
