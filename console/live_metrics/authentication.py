"""Authentication of sockets by the session cookie, with the same rules as for pages.

Only scripts of the console's own pages may open a socket.
"""

from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.utils import translation

from caret.contracts.snapshot import TenantStatus
from console.layout.preferences import preferences_of
from console.sign_in.current_member import find_member
from console.sign_in.sessions.session_store import SessionStore
from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor

_SCHEMES: Final = {"ws": "http", "wss": "https"}  # HTTP scheme by the scheme of the socket


@dataclass(frozen=True, slots=True)
class Viewer:
    """The signed-in user of a socket."""

    actor: Actor
    language: str  # one of settings.LANGUAGES
    zone: str  # IANA name of the time zone
    status: TenantStatus
    session_key: str = field(repr=False)


def authenticate_viewer(scope: dict[str, Any]) -> Viewer | None:
    """Return the viewer.

    None: the socket does not come from our own page, nobody is signed in, a required second factor
    is missing, or the user may not see the figures. `scope` is the ASGI scope of the socket. Each
    call makes three queries, so that the end of a session or membership takes effect at once.
    """
    request = _request_of(scope)
    if not _is_own_page(request):
        return None
    token = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    request.session = SessionStore.from_token(token)
    request.user = get_user(request)
    member = find_member(request)
    if member is None or member.is_mfa_missing:
        return None
    actor = member.actor
    if not (
        actor.has_permission(Permission.READ_USAGE)
        or actor.has_permission(Permission.READ_OWN_USAGE)
    ):
        return None
    language = translation.get_language_from_request(request)
    session_key = request.session.session_key or ""
    return Viewer(actor, language, preferences_of(request).zone, member.tenant.status, session_key)


def _request_of(scope: dict[str, Any]) -> ASGIRequest:
    """Return the handshake of the socket as an HTTP request."""
    scheme = _SCHEMES.get(scope.get("scheme", "ws"), "http")
    http = {**scope, "type": "http", "method": "GET", "scheme": scheme}
    return ASGIRequest(http, BytesIO())


def _is_own_page(request: ASGIRequest) -> bool:
    """Return whether the Origin header names the console.

    The check is needed because browsers send the session cookie with the sockets of any web page.
    """
    origin = request.META.get("HTTP_ORIGIN")
    try:
        own_origin = f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return False
    return origin == own_origin or origin in settings.CSRF_TRUSTED_ORIGINS
