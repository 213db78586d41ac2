"""The layout of a prompt: which segments it has, in which order, within which token budget."""
