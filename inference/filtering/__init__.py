"""Filtering of the engine's text while it streams: what is useful to show."""
