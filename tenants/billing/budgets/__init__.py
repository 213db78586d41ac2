"""Budgets: limits of spending for a tenant, a team or a user in a UTC month.

Gateways enforce hard budgets before anything is spent
(inference.gateway.rate_limits.budget_reservation). This package sets budgets, compares them with
the rated usage and sends alerts.
"""
