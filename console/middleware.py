"""What each answer of the console carries, and how each request is to be written."""

import codecs
from collections.abc import Callable

import structlog
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from redis import RedisError

from caret.foundation.web.credential_notes import note_credential
from console.layout.content_security_policy import OPERATORS_POLICY, POLICY
from console.sign_in.operator_cookies import is_operator_path
from console.views.errors import unavailable

logger = structlog.get_logger(__name__)


class ContentSecurityPolicy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = OPERATORS_POLICY if is_operator_path(request) else POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        response["Permissions-Policy"] = "interest-cohort=(), camera=(), microphone=()"
        return response


class NoStore:
    """No browser and no proxy stores an answer: after a user has signed out, a shared computer's
    back button and disk show nothing. Only answers that are marked public may be stored: files
    that are the same for everybody, with a digest in their address, and public keys.

    Whatever else a view or a library says of caching is replaced.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if not response.headers.get("Cache-Control", "").startswith("public,"):
            response["Cache-Control"] = "no-store"
        return response


class SessionNotes:
    """Note for the server that a request came with a signed-in session, so that its connection is
    not counted as unauthenticated. No query: a session that no view has read counts as none."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        session = request.session
        if session.accessed and session.get(SESSION_KEY):
            note_credential(request)
        return response


class RedisErrorMiddleware:
    """Or else it is said that it does not. Pages of allauth's count tries and used codes there:
    who cannot count lets nobody in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, RedisError):
            return None
        logger.warning("redis.unreachable", error=type(exception).__name__)
        return unavailable(request)


class Utf8OnlyMiddleware:
    """Django reads forms and addresses by whatever codec a request names, and Python has some that
    make what is no text (unicode_escape: halves of surrogate pairs) or none at all (zlib)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # None: it names none, or one that nobody knows.
        if request.encoding is not None and codecs.lookup(request.encoding).name != "utf-8":
            raise BadRequest("Requests must be encoded in UTF-8.")
        return self._get_response(request)
