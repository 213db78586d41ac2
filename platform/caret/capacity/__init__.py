"""Capacity planning: GPUs for a load, latency of first tokens, and cost of accepted tokens."""
