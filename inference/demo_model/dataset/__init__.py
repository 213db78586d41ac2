"""The tokenised training corpus, built from the standard library and packages from PyPI."""
