"""Pages of the platform's operators: on Django's admin site, behind a door of their own."""
