"""The `next` parameter: the page that opens after sign-in or reauthentication.

Every page that accepts `next` checks it here, including django-allauth's pages
(`AccountAdapter.is_safe_url`).
"""

from typing import Final
from urllib.parse import unquote

from django.http import HttpRequest

FIRST_PAGE: Final = "/"
MAX_CHARS: Final = 2_048  # an SSO sign-in stores it in the session


def next_page(request: HttpRequest) -> str:
    """Return `next` of the form or the URL, or the first page if it is not a path of this site."""
    text = request.POST.get("next") or request.GET.get("next") or FIRST_PAGE
    return text if is_own_path(text) else FIRST_PAGE


def is_own_path(text: str) -> bool:
    r"""Return whether `text` is a printable path of at most MAX_CHARS on this host.

    The page need not exist. Browsers read `//host` and `/\host` as another host, and drop tabs and
    line breaks first.
    """
    return (
        text.startswith("/")
        and not text.startswith(("//", "/\\"))
        and len(text) <= MAX_CHARS
        and text.isprintable()
        and unquote(text).isprintable()
    )
