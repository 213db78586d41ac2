"""Invitations: a token goes out by mail, who shows it becomes a member."""
