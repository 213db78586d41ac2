"""The `next` parameter: the path of the page that opens after a sign-in or a step-up.

Every page that accepts `next` checks it here. django-allauth's pages do so by
`AccountAdapter.is_safe_url`.
"""

from typing import Final
from urllib.parse import unquote

from django.http import HttpRequest

FIRST_PAGE: Final = "/"
MAX_CHARS: Final = 2_048  # of `next`, which an SSO sign-in stores in the session


def next_page(request: HttpRequest) -> str:
    """Return `next` of the form or the URL; the first page if it is missing or not our path."""
    text = request.POST.get("next") or request.GET.get("next") or FIRST_PAGE
    return text if is_own_path(text) else FIRST_PAGE


def is_own_path(text: str) -> bool:
    r"""Return whether `text` is a path on this host: printable, and at most MAX_CHARS long.

    The page need not exist. Browsers read `//host` and `/\host` as another host. Before that, they
    remove tabs and line breaks, which are not printable. The decoded path must be printable as
    well, so that `%0d%0a` never becomes a line break in a header.
    """
    return (
        text.startswith("/")
        and not text.startswith(("//", "/\\"))
        and len(text) <= MAX_CHARS
        and text.isprintable()
        and unquote(text).isprintable()
    )
