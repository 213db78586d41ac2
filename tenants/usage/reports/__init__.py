"""Reports on usage, with suppression of small groups."""
