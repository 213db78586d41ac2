"""Separate cookies for the operator pages: operator and console sessions are never interchangeable.

Django's middleware knows one name for each cookie. Below the operators' path, cookies in requests
and responses are renamed: Django sees its own names, and the browser sees the operators' names.
"""

from collections.abc import Callable
from http.cookies import Morsel
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SESSION: Final = "caret-operator"
_CSRF: Final = "caret-operator-csrf"


def is_operator_path(request: HttpRequest) -> bool:
    path: str | None = settings.OPERATORS_PATH
    return path is not None and request.path_info.startswith(f"/{path}")


def cookie_names() -> dict[str, str]:
    """Return the operators' cookie name for each of Django's names."""
    # Not `__Host-`, which requires the path /: these cookies must never be sent to the console.
    prefix = "__Secure-" if settings.HTTPS else ""
    return {
        settings.SESSION_COOKIE_NAME: prefix + _SESSION,
        settings.CSRF_COOKIE_NAME: prefix + _CSRF,
    }


class OperatorCookieMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_operator_path(request):
            return self._get_response(request)
        names = cookie_names()
        for usual_name, own_name in names.items():
            request.COOKIES.pop(usual_name, None)
            if own_name in request.COOKIES:
                request.COOKIES[usual_name] = request.COOKIES[own_name]
        response = self._get_response(request)
        for usual_name, own_name in names.items():
            if usual_name in response.cookies:
                _rename_cookie(response, response.cookies.pop(usual_name), own_name)
        return response


def _rename_cookie(response: HttpResponse, morsel: "Morsel[str]", own_name: str) -> None:
    path = f"/{settings.OPERATORS_PATH}"
    if morsel["max-age"] == 0:
        response.delete_cookie(own_name, path=path, samesite="Strict")
        return
    response.set_cookie(
        own_name,
        morsel.value,
        max_age=morsel["max-age"] or None,
        path=path,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Strict",
    )
