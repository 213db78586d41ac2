"""Stripe as an adapter: the ledger's tokens are reported as meter events; it decides nothing."""
