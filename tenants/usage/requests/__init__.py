"""Single completions: lists, lookup by ID, and where their time went."""
