"""Requests that may be sent twice and are done once."""
