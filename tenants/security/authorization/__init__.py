"""Actors and what they may do."""
