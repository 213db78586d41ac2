"""Whose prefix-cache entries a request may hit."""
