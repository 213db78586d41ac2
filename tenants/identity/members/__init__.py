"""Tenants' people: who belongs to whom, and what each role may do."""
