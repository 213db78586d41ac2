"""Invitations: the bearer of an e-mailed token becomes a member."""
