"""The page of the onboarding steps. The overview shows them as a card, which users can dismiss."""

from typing import Final

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from console.layout.htmx import render_page
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.onboarding.steps import build_onboarding_steps

# "1" if the user has dismissed the card or completed all steps. Like the cookies of preferences, it
# does not identify the user.
_DISMISSED_COOKIE: Final = "caret-start"
_YEAR_S: Final = 365 * 24 * 3600


@require_GET
@member_required
def show_steps(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    steps = build_onboarding_steps(member.actor)
    if not steps:
        raise PermissionDenied
    context = {
        "steps": steps,
        "num_steps": len(steps),
        "num_done": sum(step.is_done for step in steps),
        "is_dismissed": is_dismissed(request),
    }
    response = render_page(request, member, "console/onboarding/detail.html", context)
    if all(step.is_done for step in steps):
        # The pages with the card then need no queries to find out that all steps are done.
        _set_dismissed_cookie(response)
    return response


@require_POST
@member_required
def dismiss_card(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    response = redirect("console:overview")
    _set_dismissed_cookie(response)
    text = gettext("Card dismissed. The overview no longer shows it.")
    toast(request, text, undo_url=reverse("console:start-restore"))
    return response


@require_POST
@member_required
def restore_card(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    response = redirect("console:overview")
    response.delete_cookie(_DISMISSED_COOKIE, samesite="Lax")
    return response


def _set_dismissed_cookie(response: HttpResponse) -> None:
    response.set_cookie(
        _DISMISSED_COOKIE,
        "1",
        max_age=_YEAR_S,
        secure=settings.HTTPS,
        samesite="Lax",
        httponly=True,
    )


def is_dismissed(request: HttpRequest) -> bool:
    return request.COOKIES.get(_DISMISSED_COOKIE) == "1"
