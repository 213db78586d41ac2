"""The trail itself, newest first. That somebody looked becomes an entry of it."""

import uuid
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.date_range_form import DaysForm, begin_of, end_of
from console.layout.diff_lines import Line, changed_lines
from console.layout.htmx import show
from console.layout.pagination import address_of, turning
from console.layout.permission_required import allowed
from tenants.base.errors import Invalid
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.members.queries import find_member_by_email
from tenants.security.audit.queries import Asked, EntryView, list_entries
from tenants.security.authorization.actor import ActorKind

_PAGE: Final = "console/audit/entries.html"
_PART: Final = "console/audit/_entries.html"
_LIMIT: Final = 50
_NOBODY: Final = str(uuid.UUID(int=0))


class Filter(DaysForm):
    action = forms.CharField(label=_("Action"), max_length=60, required=False)
    actor = forms.CharField(label=_("By"), max_length=254, required=False)
    target = forms.CharField(label=_("On"), max_length=200, required=False)


@dataclass(frozen=True, slots=True)
class Row:
    entry: EntryView
    who: str
    changes: list[Line]
    action_url: str
    actor_url: str  # "": nobody to ask for
    target_url: str


@require_GET
@for_members
@allowed(Permission.READ_AUDIT)
def entries(request: HttpRequest, member: Member) -> HttpResponse:
    form = Filter(request.GET)
    context: dict[str, Any] = {"form": form, "is_filtered": _is_filtered(request)}
    try:
        page = _found(request, member, form)
    except Invalid as error:
        context["error"] = told(error)
        return show(request, member, _PAGE, context, part=_PART, status=400)
    context |= {"rows": [_row(entry) for entry in page.rows], "turning": turning(request, page)}
    return show(request, member, _PAGE, context, part=_PART)


def _found(request: HttpRequest, member: Member, form: Filter) -> Page[EntryView]:
    """Raises Invalid."""
    if not form.is_valid():
        raise Invalid("filter", "This cannot be asked for.")
    return list_entries(
        actor=member.actor,
        asked=_asked(member, form.cleaned_data),
        limit=_LIMIT,
        cursor=request.GET.get("cursor") or None,
        now=timezone.now(),
    )


def _asked(member: Member, cleaned: dict[str, Any]) -> Asked:
    return Asked(
        action=cleaned["action"] or None,
        actor=_actor(member, cleaned["actor"]),
        target=cleaned["target"] or None,
        since=begin_of(cleaned["first"]),
        until=end_of(cleaned["last"]),
    )


def _actor(member: Member, text: str) -> str | None:
    """An address stands for the member whose it is; one that none has stands for nobody, so that
    nobody learns here who else has an account on the platform."""
    if "@" not in text:
        return text or None
    found = find_member_by_email(actor=member.actor, email=text)
    return _NOBODY if found is None else found.user_id


def _is_filtered(request: HttpRequest) -> bool:
    return any(request.GET.get(name) for name in Filter.base_fields)


def _row(entry: EntryView) -> Row:
    actor = entry.actor_key or str(entry.actor_id or "")
    if entry.actor_kind is ActorKind.PLATFORM:
        actor = ActorKind.PLATFORM.value
    return Row(
        entry=entry,
        who=_who(entry),
        changes=changed_lines(entry.before, entry.after),
        action_url=address_of("audit", action=entry.action),
        actor_url=address_of("audit", actor=actor) if actor else "",
        target_url=address_of("audit", target=entry.target),
    )


def _who(entry: EntryView) -> str:
    if entry.actor_email:
        return entry.actor_email
    if entry.actor_key:
        return entry.actor_key
    if entry.actor_kind is ActorKind.PLATFORM:
        return gettext("The platform")
    return gettext("Somebody erased")
