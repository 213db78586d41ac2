"""Experiments: variants side by side, and how sure the differences are."""
