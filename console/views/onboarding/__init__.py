"""Onboarding: the first steps from sign-in to a completion in the user's editor."""
