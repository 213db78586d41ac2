"""Exports: asked for, watched, fetched with their proofs."""
