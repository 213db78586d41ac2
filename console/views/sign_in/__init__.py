"""Sign-in with password, provider or passkey; invitations and forgotten passwords."""
