"""Actors and their permissions."""
