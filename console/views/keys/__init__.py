"""API keys: listed, made, looked at, rotated, revoked."""
