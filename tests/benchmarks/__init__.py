"""Benchmarks of the product: `python -m tests.benchmarks.NAME` prints one JSON line per result."""
