"""A small model of our own, so that the quick start completes code without a download."""
