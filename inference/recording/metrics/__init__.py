"""Prometheus metrics of the gateway and their HTTP server."""
