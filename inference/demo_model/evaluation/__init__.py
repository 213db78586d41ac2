"""Measurements of the trained model."""
