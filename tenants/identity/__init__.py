"""Users and their access: members, teams, invitations, API keys, SSO, SCIM and domains."""
