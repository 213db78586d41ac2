"""Channels consumers, one for each protocol. Only these modules know Channels."""
