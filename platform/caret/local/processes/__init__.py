"""Start, supervision and end of the local processes."""
