"""What a tenant allows, version after version."""
