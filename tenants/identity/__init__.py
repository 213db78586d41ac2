"""Users and how they sign in: members, teams, invitations, API keys, SSO, SCIM and domains."""
