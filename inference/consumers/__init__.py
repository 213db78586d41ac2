"""Channels' adapters, one a protocol: the only modules here that know Channels."""
