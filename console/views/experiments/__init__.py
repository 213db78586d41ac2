"""Experiments: a comparison of their variants, with confidence intervals."""
