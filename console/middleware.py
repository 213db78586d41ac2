"""What each answer of the console carries, and how each request is to be written."""

import codecs
from collections.abc import Callable
from typing import Final

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

from console.operators.door import is_operators

# Nothing from elsewhere, nothing inline. The console works without its one script, except for
# passkeys, which browsers give to scripts alone.
_DIRECTIVES: Final = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
]
POLICY: Final = "; ".join(_DIRECTIVES)
# The operators' pages have a typeface.
OPERATORS_POLICY: Final = "; ".join([*_DIRECTIVES, "font-src 'self'"])


class ContentSecurityPolicy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = OPERATORS_POLICY if is_operators(request) else POLICY
        response["Content-Security-Policy"] = policy
        response["Permissions-Policy"] = "interest-cohort=(), camera=(), microphone=()"
        # Pages show tenants' data: a shared computer's back button must not.
        if "Cache-Control" not in response:
            response["Cache-Control"] = "no-store"
        return response


class Utf8Only:
    """Django reads forms and addresses by whatever codec a request names, and Python has some that
    make what is no text (unicode_escape: halves of surrogate pairs) or none at all (zlib)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # None: it names none, or one that nobody knows.
        if request.encoding is not None and codecs.lookup(request.encoding).name != "utf-8":
            raise BadRequest("Requests are written in UTF-8.")
        return self._get_response(request)
