"""Fuzzers that run for minutes, with a seed that repeats them."""
