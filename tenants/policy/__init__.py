"""Tenants' policies, as numbered versions."""
