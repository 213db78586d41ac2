"""Encrypted sessions in the database. A copy of the tables is not enough to sign in.

The browser's cookie contains a random token. `session_key`, which Django and django-allauth store
and compare, is the token's hash. `SessionStore.from_token` hashes the value of each cookie, so a
stolen `session_key` that is sent as a cookie finds no session.

Session data may contain secrets, such as an invitation's token or a second factor during its setup.
The data is therefore encrypted and bound to its session.
"""

import hashlib
import secrets
from base64 import b64decode, b64encode, urlsafe_b64encode
from typing import Any, Final, Self

from django.conf import settings
from django.contrib.sessions.backends import db
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from tenants.identity.members.access_changes import announce_access_change

# The column has 40 characters, which hold 240 of the 256 bits of SHA-256.
_KEY_BYTES: Final = 30
_TOKEN_BYTES: Final = 32


class SessionKey(str):
    """A stored session key, together with the token from which it was derived.

    django-allauth creates further `SessionStore` objects with this key during a request. They need
    the token to set the cookie.
    """

    __slots__ = ("token",)

    token: str  # the cookie's value

    @classmethod
    def from_token(cls, token: str) -> Self:
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        key = cls(urlsafe_b64encode(digest[:_KEY_BYTES]).decode())
        key.token = token
        return key


class SessionStore(db.SessionStore):
    @classmethod
    def from_token(cls, token: str | None) -> Self:
        """Return the session of a cookie's value; an empty session for None or an unknown value."""
        return cls(SessionKey.from_token(token) if token else None)

    @property
    def token(self) -> str:
        """The cookie's value. Only for sessions that are new or were found by a token."""
        assert isinstance(self.session_key, SessionKey)
        return self.session_key.token

    def _get_new_session_key(self) -> SessionKey:
        return SessionKey.from_token(secrets.token_urlsafe(_TOKEN_BYTES))

    def encode(self, session_dict: dict[str, Any]) -> str:
        text = self.serializer().dumps(session_dict)
        return b64encode(seal(_sealing_key(), text, bound_to=self._bound_to())).decode()

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Return the session's data; empty if it is malformed or encrypted with another key."""
        try:
            text = unseal(_sealing_key(), b64decode(session_data), bound_to=self._bound_to())
        except (DecryptionFailed, ValueError):
            return {}
        data: dict[str, Any] = self.serializer().loads(text)
        return data

    def _bound_to(self) -> bytes:
        return f"session/1|{self.session_key}".encode()

    def delete(self, session_key: str | None = None) -> None:
        """Delete a session, by default this one, and announce that to open sockets."""
        ended_key = session_key or self.session_key
        super().delete(session_key)
        if ended_key is not None:
            announce_access_change(ended_key)


class HashedSessionMiddleware(SessionMiddleware):
    """Django's session middleware, but with the token in the cookie instead of the session key."""

    def process_request(self, request: HttpRequest) -> None:
        token = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        request.session = SessionStore.from_token(token)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        final_response = super().process_response(request, response)
        cookie = final_response.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is not None and cookie.value:  # empty: the cookie of an ended session is deleted
            assert isinstance(request.session, SessionStore)
            final_response.cookies[settings.SESSION_COOKIE_NAME] = request.session.token
        return final_response


def _sealing_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "sessions/1")
