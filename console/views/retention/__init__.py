"""Pages about how long data is kept: by class, legal holds, certificates of deletion."""
