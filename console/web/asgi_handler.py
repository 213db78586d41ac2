"""Django's ASGI handler, which answers unreadable headers with 400 instead of 500."""

from collections.abc import Mapping
from typing import IO, Any, Final

from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http.response import HttpResponseBase

from console.api.problems import Problem, problem_response

_UNREADABLE: Final = Problem(400, "bad_request", "The request headers are not valid.")


class Handler(ASGIHandler):
    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        """Return the request, or a 400 response for headers that cannot be read.

        No middleware can do this, because none runs before it. Django answers invalid UTF-8 itself.
        It does not catch the errors of Python's codecs for other charsets in `Content-Type`:
        `charset*=nope''x` (ValueError), `charset*=idna''..` (UnicodeError, a subclass).
        """
        try:
            return super().create_request(scope, body_file)
        except ValueError:
            refusal = problem_response(_UNREADABLE)
            refusal["Cache-Control"] = "no-store"
            return None, refusal
