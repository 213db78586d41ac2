"""Outbound connections, allowed by IP address."""
