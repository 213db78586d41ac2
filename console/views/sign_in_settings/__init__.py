"""How people sign in: domains, identity provider, second factor, SCIM."""
