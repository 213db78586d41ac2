"""API keys: made, listed, revoked. Their format is caret.contracts.credential's."""
