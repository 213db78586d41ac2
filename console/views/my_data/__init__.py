"""Pages about what is held about oneself: consent, all of it as a file, one's policy."""
