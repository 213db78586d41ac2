"""The user's own data: consent, download, effective policy."""
