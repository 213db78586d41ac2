"""The user's own API keys, and the editors that signed in."""
