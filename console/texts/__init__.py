"""Texts and numbers in the reader's language: errors, amounts of money, editor settings."""
