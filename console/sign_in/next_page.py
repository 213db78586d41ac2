"""The `next` parameter: which page opens once a user has signed in or confirmed their identity.

Every page that takes one asks here, django-allauth's pages included (`AccountAdapter.is_safe_url`).
"""

from typing import Final
from urllib.parse import unquote

from django.http import HttpRequest

FIRST_PAGE: Final = "/"
MAX_CHARS: Final = 2_048  # the session of a sign-in by an identity provider keeps it


def next_page(request: HttpRequest) -> str:
    """Return `next` of the form or the address, or the first page if it is no path of ours."""
    text = request.POST.get("next") or request.GET.get("next") or FIRST_PAGE
    return text if is_own_path(text) else FIRST_PAGE


def is_own_path(text: str) -> bool:
    r"""Return whether browsers resolve `text` to this host. The page need not exist.

    Browsers read `//host` and `/\host` as another host, and drop tabs and line breaks first.
    """
    return (
        text.startswith("/")
        and not text.startswith(("//", "/\\"))
        and len(text) <= MAX_CHARS
        and text.isprintable()
        and unquote(text).isprintable()
    )
