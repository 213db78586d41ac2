"""The composition root: reads the environment and assembles the data plane."""
