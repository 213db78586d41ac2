"""Budgets: what a tenant, a team or a user may spend in a UTC month.

Gateways enforce the hard ones, before anything is spent
(inference.gateway.rate_limits.budget_reservation). Here they are
set, compared with what was rated, and those who are to know are told.
"""
