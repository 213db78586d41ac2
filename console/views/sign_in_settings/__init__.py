"""Sign-in settings: domains, identity provider, second factor, SCIM."""
