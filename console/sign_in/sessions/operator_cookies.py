"""Separate session and CSRF cookies for the operators' pages.

So no operator session is valid in the console, and no console session at the operators' pages.

Django's middleware knows one name for each of these cookies. Below the operators' path, they are
renamed in requests and responses: Django sees its own names, and the browser the operators' names.
"""

from collections.abc import Callable
from http.cookies import Morsel
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_SESSION_COOKIE: Final = "caret-operator"
_CSRF_COOKIE: Final = "caret-operator-csrf"


def is_operator_path(request: HttpRequest) -> bool:
    path: str | None = settings.OPERATORS_PATH  # None: there are no operators' pages
    return path is not None and request.path_info.startswith(f"/{path}")


def cookie_names() -> dict[str, str]:
    """Return the operators' cookie name for each of Django's names."""
    # Not `__Host-`, which requires the path /: these cookies must never be sent to the console.
    prefix = "__Secure-" if settings.HTTPS else ""
    return {
        settings.SESSION_COOKIE_NAME: prefix + _SESSION_COOKIE,
        settings.CSRF_COOKIE_NAME: prefix + _CSRF_COOKIE,
    }


class OperatorCookieMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_operator_path(request):
            return self._get_response(request)
        names = cookie_names()
        for django_name, operator_name in names.items():
            request.COOKIES.pop(django_name, None)
            if operator_name in request.COOKIES:
                request.COOKIES[django_name] = request.COOKIES[operator_name]
        response = self._get_response(request)
        for django_name, operator_name in names.items():
            if django_name in response.cookies:
                _rename_cookie(response, response.cookies.pop(django_name), operator_name)
        return response


def _rename_cookie(response: HttpResponse, morsel: "Morsel[str]", operator_name: str) -> None:
    """Set the operators' cookie to the value of Django's cookie `morsel`.

    If Django deletes its cookie, delete the operators' cookie instead.
    """
    path = f"/{settings.OPERATORS_PATH}"
    if morsel["max-age"] == 0:
        response.delete_cookie(operator_name, path=path, samesite="Strict")
        return
    response.set_cookie(
        operator_name,
        morsel.value,
        max_age=morsel["max-age"] or None,  # None: until the browser closes
        path=path,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Strict",
    )
