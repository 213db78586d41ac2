"""Removal of secrets from texts before they become part of a prompt."""
