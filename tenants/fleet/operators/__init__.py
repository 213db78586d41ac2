"""The platform's operators: people of no tenant, who see of tenants no content."""
