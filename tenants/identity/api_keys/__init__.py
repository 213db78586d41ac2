"""API keys: made, listed, revoked. Their format is caret.contracts.api_key's."""
