"""Django's handler, for which a head that cannot be read is the client's mistake."""

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
        """Before any middleware, which therefore cannot do it. Django answers what is no UTF-8, and
        lets go what its reading of `Content-Type` and Python's codecs say of a charset otherwise:
        `charset*=nope''x` (ValueError), `charset*=idna''..` (UnicodeError, which is one)."""
        try:
            return super().create_request(scope, body_file)
        except ValueError:
            refusal = problem_response(_UNREADABLE)
            refusal["Cache-Control"] = "no-store"
            return None, refusal
