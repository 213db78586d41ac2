"""Speculative decoding, enabled per language by its acceptance rate."""
