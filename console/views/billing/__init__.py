"""Billing: the plan, the current month, the ledger, invoices, the billing profile."""
