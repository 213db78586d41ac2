"""What policies have refused or withheld lately: counts and reasons, never content."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.member import Member, for_members
from console.shell.parts import show
from console.views.exclusion.pages import tabs
from console.views.policies.words import MODES
from tenants.members.permissions import Permission
from tenants.members.queries import emails_of
from tenants.policies.denials import Denials, count_denials

_SPANS: Final = (7, 30, 90)  # days
MAX_SHOWN: Final = 100  # rows
REASONS: Final = {
    "feature_disabled": _("The feature is off"),
    "model_not_allowed": _("The model is not allowed"),
    "path_excluded": _("The path is excluded"),
    "region_not_allowed": _("The region is not allowed"),
    "scope_missing": _("The key lacks the scope"),
    "public_code": _("Withheld: public code"),
    "secret": _("Withheld: looks like a secret"),
}


class SpanForm(forms.Form):
    days = forms.ChoiceField(
        label=_("Of the last"),
        choices=[(str(days), ngettext_lazy("%d day", "%d days", days) % days) for days in _SPANS],
        required=False,
    )


@dataclass(frozen=True, slots=True)
class Row:
    reason: str
    mode: str
    who: str
    num: int
    last_at: datetime


@require_GET
@for_members
def denials(request: HttpRequest, member: Member) -> HttpResponse:
    form = SpanForm(request.GET)
    is_valid = form.is_valid()
    days = int((form.cleaned_data["days"] if is_valid else "") or _SPANS[0])
    found = count_denials(actor=member.actor, num_days=days, now=timezone.now())
    context = {
        "tabs": tabs(request, member),
        "form": form,
        "rows": _rows(member, found[:MAX_SHOWN]),
        "num": sum(each.num for each in found),
        "num_hidden": max(0, len(found) - MAX_SHOWN),
        "are_all": member.actor.may(Permission.READ_USAGE),
    }
    return show(
        request,
        member,
        "console/exclusion/denials.html",
        context,
        part="console/exclusion/_denials.html",
        status=200 if is_valid else 400,
    )


def _rows(member: Member, found: list[Denials]) -> list[Row]:
    user_ids = {each.user_id for each in found if each.user_id is not None}
    emails = {}
    if member.actor.may(Permission.READ_MEMBERS):
        emails = emails_of(actor=member.actor, user_ids=user_ids)
    own = member.actor.user_id
    return [
        Row(
            reason=str(REASONS[each.reason]),
            mode=str(MODES.get(each.mode, each.mode)),
            who=gettext("Service keys")
            if each.user_id is None
            else gettext("You")
            if each.user_id == own
            else emails.get(each.user_id, each.user_id),
            num=each.num,
            last_at=each.last_at,
        )
        for each in found
    ]
