"""The files of `console/static` and their URLs."""
