"""Budgets: limits of spending for a tenant, a team or a user in a UTC month.

Gateways check hard budgets before each completion
(inference.gateway.rate_limits.budget_reservation). This package sets budgets, compares them with
the cost of usage and sends alerts.
"""
