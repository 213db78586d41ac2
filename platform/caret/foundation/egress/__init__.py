"""Outbound connections, allowed by address."""
