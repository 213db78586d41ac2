"""Rating: posting usage and seats to the ledger, exactly once."""
