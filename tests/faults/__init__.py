"""Planted faults: they measure what the test suite catches."""
