"""Limits on guesses, on password checks and on requests that wait for other systems."""
