"""The platform's operators. They belong to no tenant and see no tenant's content."""
