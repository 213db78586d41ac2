"""Destroying and opening things asks who is there once more: whoever showed it a while ago shows it
again first.

    @for_members
    @allowed(Permission.WRITE_TEAMS)
    @confirmed
    def delete(request, member, team_id): ...

The question comes on GET, too, so that nobody fills a form in vain. A form that comes too late for
its sender to be believed is kept while he is asked, and then carried on with.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast
from urllib.parse import urlencode

from allauth.account import app_settings
from allauth.account.internal.flows.login import get_authentication_records
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from console.layout.pending_form import PendingForm, store_pending_form
from console.sign_in.current_member import CurrentMember
from console.sign_in.session import provider_of, signed_in_at_s

_CSRF_FIELD: Final = "csrfmiddlewaretoken"
P = ParamSpec("P")
_View = Callable[Concatenate[HttpRequest, CurrentMember, P], HttpResponse]


def step_up_required(view: _View[P]) -> _View[P]:
    """For views within `for_members`, below `allowed`."""

    @wraps(view)
    def guarded(
        request: HttpRequest, member: CurrentMember, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        way = step_up_url(request, member)
        return view(request, member, *args, **kwargs) if way is None else way

    return cast(_View[P], guarded)


def step_up_url(request: HttpRequest, member: CurrentMember) -> HttpResponse | None:
    """None: he has shown who he is within settings.ACCOUNT_REAUTHENTICATION_TIMEOUT. For views that
    destroy only what some of their forms say. Raises redis.RedisError."""
    if _is_fresh(request):
        return None
    target = request.get_full_path() if request.method == "GET" else _kept(request, member)
    return redirect(f"{_way(request)}?{urlencode({'next': target})}")


def _kept(request: HttpRequest, member: CurrentMember) -> str:
    """Where the form is carried on with."""
    fields = {name: texts for name, texts in request.POST.lists() if name != _CSRF_FIELD}
    token = store_pending_form(member.actor, PendingForm(request.get_full_path(), fields))
    return reverse("console:go-on", args=[token])


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
