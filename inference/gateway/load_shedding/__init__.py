"""Concurrency limits and load shedding, for each pool and each tenant."""
