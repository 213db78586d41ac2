"""Faults on hosts of their own (network namespaces), and a ledger of what was sent and billed."""
