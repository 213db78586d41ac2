"""Rating: usage and seats into the ledger, each once."""
