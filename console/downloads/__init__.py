"""Responses that download a file."""
