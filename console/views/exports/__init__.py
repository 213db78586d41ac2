"""Exports: request, progress, download, proof and verification."""
