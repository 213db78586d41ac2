"""Conversion of text to token IDs, with the caches that make this cheap."""
