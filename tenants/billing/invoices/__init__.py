"""Invoices: made of the ledger's entries of a month, the same bytes each time; corrected by credit
notes, never edited."""
