"""Destroying things asks who is there once more: whoever signed in a while ago confirms it first.

    @for_members
    @confirmed
    def close_tenant(request, member): ...

The question comes on GET, too, so that nobody fills a form in vain.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from allauth.account import app_settings
from allauth.account.internal.flows.login import get_authentication_records
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from console.member import Member
from console.sign_in.session import provider_of, signed_in_at_s

P = ParamSpec("P")
_View = Callable[Concatenate[HttpRequest, Member, P], HttpResponse]


def confirmed(view: _View[P]) -> _View[P]:
    """For views within `for_members`; settings.ACCOUNT_REAUTHENTICATION_TIMEOUT says how recent."""

    @wraps(view)
    def guarded(
        request: HttpRequest, member: Member, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if not _is_fresh(request):
            return redirect(f"{_way(request)}?{urlencode({'next': request.get_full_path()})}")
        return view(request, member, *args, **kwargs)

    return cast(_View[P], guarded)


def _is_fresh(request: HttpRequest) -> bool:
    """Signing in counts as well as confirming. allauth's own question counts a confirmation only,
    and lets everybody through who has neither password nor second factor here."""
    shown = [record["at"] for record in get_authentication_records(request, request.user)]
    last_s = max([*shown, signed_in_at_s(request)])
    return bool(time.time() - last_s < app_settings.REAUTHENTICATION_TIMEOUT)


def _way(request: HttpRequest) -> str:
    """Who came by an identity provider has no password here: he signs in there again."""
    if provider_of(request) is not None:
        return reverse("console:sign-in-again")
    return reverse("account_reauthenticate")
