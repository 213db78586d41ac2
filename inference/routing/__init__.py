"""Routing: selects the replica for a prompt."""
