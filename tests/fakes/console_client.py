"""A browser that uses the console."""

from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.test import Client as DjangoClient

from console.sign_in.sessions.session_store import SessionStore


class Client(DjangoClient):
    """A test client whose session cookie contains a token, as the console's does. Django's own
    client puts the session key there."""

    @property
    def session(self) -> Any:
        cookie = self.cookies.get(settings.SESSION_COOKIE_NAME)
        if cookie is None:
            return super().session
        return SessionStore.from_token(cookie.value)

    def _set_login_cookies(self, request: HttpRequest) -> None:
        super()._set_login_cookies(request)  # type: ignore[misc]  # Django's own, without types
        token = cast(SessionStore, request.session).token
        self.cookies[settings.SESSION_COOKIE_NAME] = token
