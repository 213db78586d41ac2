"""Suggestions of the next edit: a change of lines near the cursor or away from it."""
