"""Tenants for operators: directory, creation, details and changes."""
