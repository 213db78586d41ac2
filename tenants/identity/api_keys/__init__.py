"""API keys. `caret.contracts.api_key` defines their format."""
