"""Code that all processes share: contracts, foundation, settings and the composition root."""
