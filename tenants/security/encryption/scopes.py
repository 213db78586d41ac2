"""Names of data key scopes. A scope `a/b` is shredded with its parent `a`, or alone."""

from django.db.models import Q


def scope_and_children(scope: str) -> Q:
    """Return the filter for the data keys of a scope and of those below it."""
    return Q(scope=scope) | Q(scope__startswith=f"{scope}/")
