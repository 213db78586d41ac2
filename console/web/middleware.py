"""Middleware of the console: headers and compression of responses, and checks of requests."""

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

# Start of the paths whose pages show new authenticator secrets and recovery codes.
_PATH_OF_SECRETS: Final = "/account/"


class SecurityHeadersMiddleware:
    """Sets Permissions-Policy, and Content-Security-Policy if the view has not set it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = OPERATORS_POLICY if is_operator_path(request) else POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        response["Permissions-Policy"] = "interest-cohort=(), camera=(), microphone=()"
        return response


class NoStoreMiddleware:
    """Forbids browsers and proxies to store responses.

    After a sign-out, the back button and the disk of a shared computer must show nothing. A view
    can mark a response as public. Only the view of the public keys does so, because they are the
    same for everybody. Static files are served before this middleware (console.web.static_files).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if not response.headers.get("Cache-Control", "").startswith("public,"):
            response["Cache-Control"] = "no-store"
        return response


class PageCompressionMiddleware(GZipMiddleware):
    """Compresses HTML responses to GET requests, except the pages below _PATH_OF_SECRETS.

    The length of a compressed response can reveal a secret in it, if an attacker can choose text
    beside the secret and make the browser repeat the request (BREACH, ADR 0107). Therefore
    responses with secrets are not compressed: responses to POST, such as a new API key, the pages
    of second factors, and JSON. GZipMiddleware adds random padding to compressed pages, and other
    sites cannot make requests with the session's cookie.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if request.method != "GET" or not is_page or request.path.startswith(_PATH_OF_SECRETS):
            return response
        return super().process_response(request, response)


class SessionCredentialMiddleware:
    """Tells the server that a request has a signed-in session.

    The server then counts the connection as authenticated. The middleware makes no query, so it
    ignores a session that no view has read.
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

    allauth's pages count attempts and used codes in Redis. Without counters, nobody may sign in.
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
    """Rejects requests in encodings other than UTF-8.

    Django decodes forms and URLs with any Python codec that the request names. Some codecs return
    no valid text (unicode_escape: unpaired surrogates), or are not made for text (zlib).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # None: the request names no encoding, or an unknown one.
        if request.encoding is not None and codecs.lookup(request.encoding).name != "utf-8":
            raise BadRequest("Requests must be encoded in UTF-8.")
        return self._get_response(request)
