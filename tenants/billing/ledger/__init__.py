"""The ledger: double-entry bookkeeping that is only appended to."""
