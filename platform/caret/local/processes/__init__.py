"""Starts, supervises and stops the local processes."""
