"""The pages of the platform's operators, on Django's admin site with a separate sign-in."""
