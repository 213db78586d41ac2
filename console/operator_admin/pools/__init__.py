"""Pools and replicas: status, draining, added replicas."""
