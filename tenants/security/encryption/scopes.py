"""Scopes are names; a slash makes one that is shredded with the one before it, and alone, too."""

from django.db.models import Q


def scope_and_children(scope: str) -> Q:
    """Data keys of this scope and of those below it."""
    return Q(scope=scope) | Q(scope__startswith=f"{scope}/")
