"""Signing in, as django-allauth does it: what we say to it, and the addresses of its pages."""
