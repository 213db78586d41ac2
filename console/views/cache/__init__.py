"""The prefix cache of a tenant: its hits and its purge."""
