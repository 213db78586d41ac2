"""Caret's shared ground: contracts, foundation, settings and the composition root."""
