"""Consent, content capture, retention, the retrieval index and stored responses."""
