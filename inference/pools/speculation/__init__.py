"""Speculative decoding by language, switched by its acceptance rate."""
