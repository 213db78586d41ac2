"""Pages of the evaluations of models."""
