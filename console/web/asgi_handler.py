"""Django's ASGI handler, with a 400 response instead of 500 to headers that cannot be read."""

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

        No middleware can do this, because all middleware runs later. Django itself responds with
        400 to invalid UTF-8. It does not catch the errors of Python's codecs for other charsets in
        `Content-Type`: `charset*=nope''x` (ValueError), `charset*=idna''..` (UnicodeError, a
        subclass of ValueError).
        """
        try:
            return super().create_request(scope, body_file)
        except ValueError:
            refusal = problem_response(_UNREADABLE)
            refusal["Cache-Control"] = "no-store"
            return None, refusal
