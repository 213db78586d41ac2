"""Routing: the choice of the replica for a prompt."""
