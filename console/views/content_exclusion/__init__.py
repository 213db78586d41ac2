"""Content exclusion: the rules, their test, and recent refusals."""
