"""A small model trained for this project, so that the quick start completes code without a
download."""
