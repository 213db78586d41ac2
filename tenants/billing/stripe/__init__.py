"""Stripe as an adapter: it receives the ledger's tokens as meter events.

Nothing else depends on it.
"""
