"""Forms that make one thing each: a reload of the page that shows it must not make another."""

import secrets

from django.http import HttpRequest

FIELD = "form_token"


def new_form(request: HttpRequest, what: str) -> str:
    """A token for the form's FIELD."""
    token = secrets.token_urlsafe(12)
    request.session[_place(what)] = token
    return token


def take_form(request: HttpRequest, what: str) -> bool:
    """False for a form that was used already, or is not the newest."""
    expected = request.session.pop(_place(what), None)
    return expected is not None and expected == request.POST.get(FIELD)


def _place(what: str) -> str:
    return f"{what}-form"
