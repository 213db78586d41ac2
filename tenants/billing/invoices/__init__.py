"""Invoices, built from a month's ledger entries with the same bytes each time.

An invoice is never edited. Credit notes correct it.
"""
