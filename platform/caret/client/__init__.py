"""Clients of the gateway and of the REST API, and their command lines."""
