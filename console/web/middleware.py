"""Middleware of the console: response headers, and rules for requests."""

import codecs
from collections.abc import Callable
from typing import Final

import structlog
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from redis import RedisError

from caret.foundation.web.credential_notes import note_credential
from console.layout.content_security_policy import OPERATORS_POLICY, POLICY
from console.sign_in.sessions.operator_cookies import is_operator_path
from console.views.errors import unavailable

logger = structlog.get_logger(__name__)

_PATH_OF_SECRETS: Final = "/account/"  # new authenticator secrets and recovery codes


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
    """Forbids browsers and proxies to store responses, whatever views and libraries set.

    After a sign-out, a shared computer's back button and disk must show nothing. Only responses
    marked public may be stored: public keys, which are the same for everybody. Files with a digest
    in their URL do not pass here.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if not response.headers.get("Cache-Control", "").startswith("public,"):
            response["Cache-Control"] = "no-store"
        return response


class CompressPages(GZipMiddleware):
    """Compresses pages and fragments that browsers request with GET, and nothing else.

    The length of a compressed response can reveal a secret in it, if an attacker can choose text
    beside the secret and make the browser repeat the request (BREACH, ADR 0107). Therefore
    responses with secrets are not compressed: those to POST, such as a new API key, the pages of
    second factors, and JSON. Pages have random padding, and other sites cannot make requests with
    the session's cookie.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if request.method != "GET" or not is_page or request.path.startswith(_PATH_OF_SECRETS):
            return response
        return super().process_response(request, response)


class SessionNotes:
    """Tells the server that a request has a signed-in session.

    Its connection then does not count as unauthenticated. This makes no query: a session that no
    view has read counts as none.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        session = request.session
        if session.accessed and session.get(SESSION_KEY):
            note_credential(request)
        return response


class RedisErrorMiddleware:
    """Answers 503 if Redis is unreachable.

    allauth's pages count attempts and used codes there: if they cannot count, nobody may sign in.
    """

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
    """Rejects requests in other encodings than UTF-8.

    Django decodes forms and URLs with any codec that the request names. Some of Python's codecs
    return no valid text (unicode_escape: unpaired surrogates) or no text at all (zlib).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # None: the request names no encoding, or an unknown one.
        if request.encoding is not None and codecs.lookup(request.encoding).name != "utf-8":
            raise BadRequest("Requests must be encoded in UTF-8.")
        return self._get_response(request)
