"""Requests: the list, and what one request spent its time on."""
