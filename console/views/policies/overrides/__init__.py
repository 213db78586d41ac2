"""Policy overrides of teams and users: list, edit, review."""
