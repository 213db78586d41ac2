"""Checks the answer of a model that proposes an edit."""
