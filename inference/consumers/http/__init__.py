"""The HTTP server that the dialects share: reads requests, runs completions, writes responses."""
