"""Snapshots: what the data plane knows of a tenant, compiled from rows and published to Redis."""
