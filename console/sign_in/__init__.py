"""Signing in through django-allauth: our adapters, forms and views, and the URLs of its pages."""
