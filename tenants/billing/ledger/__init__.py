"""The ledger: double entry, added to and never changed."""
