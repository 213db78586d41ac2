"""Second factors and passkeys: django-allauth with our forms, limits and storage."""
