"""Step-up: users must authenticate again before sensitive actions, if they did not do so recently.

    @member_required
    @permission_required(Permission.WRITE_TEAMS)
    @step_up_required
    def delete(request, member, team_id): ...

GET requests are guarded too, so that users authenticate before they fill in a form. If the
authentication is too old when a form is submitted, the form is stored. It is submitted again after
the step-up.
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
from console.sign_in.sessions.session import provider_signed_in_at_s, provider_tenant_of

_CSRF_FIELD: Final = "csrfmiddlewaretoken"
P = ParamSpec("P")
_View = Callable[Concatenate[HttpRequest, CurrentMember, P], HttpResponse]


def step_up_required(view: _View[P]) -> _View[P]:
    """Guard a view. `member_required` and `permission_required` must stand above this decorator."""

    @wraps(view)
    def guarded(
        request: HttpRequest, member: CurrentMember, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        step_up = step_up_redirect(request, member)
        return view(request, member, *args, **kwargs) if step_up is None else step_up

    return cast(_View[P], guarded)


def step_up_required_to_save(view: _View[P]) -> _View[P]:
    """Guard a view with a form, but only when the form is submitted.

    The form is stored, and submitted again after the step-up, so that no input is lost.
    """

    @wraps(view)
    def guarded(
        request: HttpRequest, member: CurrentMember, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        step_up = None if request.method == "GET" else step_up_redirect(request, member)
        return view(request, member, *args, **kwargs) if step_up is None else step_up

    return cast(_View[P], guarded)


def step_up_redirect(request: HttpRequest, member: CurrentMember) -> HttpResponse | None:
    """Return the redirect to the step-up; None if the user authenticated recently.

    Recently means within settings.ACCOUNT_REAUTHENTICATION_TIMEOUT. A view calls this function
    itself if only some of its forms are sensitive. Raises redis.RedisError.
    """
    if _has_recent_authentication(request):
        return None
    target = request.get_full_path() if request.method == "GET" else _store_form(request, member)
    return redirect(f"{_reauthentication_url(request)}?{urlencode({'next': target})}")


def _store_form(request: HttpRequest, member: CurrentMember) -> str:
    """Store the submitted form, and return the URL of the page that submits it again."""
    fields = {name: texts for name, texts in request.POST.lists() if name != _CSRF_FIELD}
    token = store_pending_form(member.actor, PendingForm(request.get_full_path(), fields))
    return reverse("console:resume", args=[token])


def _has_recent_authentication(request: HttpRequest) -> bool:
    """Return whether the user signed in or reauthenticated recently.

    allauth's own check does not count sign-ins. It also accepts every user who has neither a
    password nor a second factor in Caret, such as users of an identity provider.
    """
    authenticated_at_s = [
        record["at"] for record in get_authentication_records(request, request.user)
    ]
    # provider_signed_in_at_s returns 0 if no provider authenticated the user.
    last_s = max([*authenticated_at_s, provider_signed_in_at_s(request)])
    return bool(time.time() - last_s < app_settings.REAUTHENTICATION_TIMEOUT)


def _reauthentication_url(request: HttpRequest) -> str:
    """Return the URL of the step-up page.

    A user of an identity provider cannot confirm with a password, and signs in again instead.
    """
    if provider_tenant_of(request) is not None:
        return reverse("console:sign-in-again")
    return reverse("account_reauthenticate")
