"""Checks of values from users: texts, e-mail domains and times."""
