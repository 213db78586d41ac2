"""Suppression of figures that would reveal single users."""
