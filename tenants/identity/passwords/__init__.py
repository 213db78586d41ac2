"""Passwords of users: changing them, and resetting forgotten ones."""
