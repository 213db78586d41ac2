"""Sign-in from an editor by the device flow (RFC 8628)."""
