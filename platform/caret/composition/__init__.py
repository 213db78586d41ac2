"""The composition root: reads the environment and puts the data plane together."""
