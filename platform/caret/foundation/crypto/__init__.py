"""Canonical JSON, key derivation, encryption and signatures."""
