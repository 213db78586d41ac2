"""Snapshots: the data plane's view of a tenant, compiled from rows and published to Redis."""
