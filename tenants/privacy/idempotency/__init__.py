"""Idempotency: a request that is sent twice is performed once."""
