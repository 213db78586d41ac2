"""Builds the tokenised training corpus from the standard library and packages from PyPI."""
