"""Planted faults, which measure how many defects the test suite catches."""
