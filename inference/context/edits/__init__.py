"""Prompts that ask a model for the next edit."""
