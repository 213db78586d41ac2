"""Pieces for ASGI servers that know nothing of what they serve."""
