"""Filters the engine's text while it streams, so that only useful text is shown."""
