"""The entries of the audit log, newest first. Reading them is itself recorded as an entry."""

import uuid
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.error_messages import translate_error
from console.layout.diff_lines import DiffLine, diff_lines
from console.layout.htmx import render_page
from console.layout.lists.date_range_form import DateRangeForm, begin_of, end_of
from console.layout.lists.pagination import page_links, page_url
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from tenants.base.errors import InvalidValue
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.members.queries import find_member_by_email
from tenants.security.audit.queries import AuditEntryView, AuditFilter, list_entries
from tenants.security.authorization.actor import ActorKind

_PAGE: Final = "console/audit/entries.html"
_PART: Final = "console/audit/_entries.html"
_LIMIT: Final = 50
_NOBODY: Final = str(uuid.UUID(int=0))


class AuditFilterForm(DateRangeForm):
    action = forms.CharField(label=_("Action"), max_length=60, required=False)
    actor = forms.CharField(label=_("Actor"), max_length=254, required=False)
    target = forms.CharField(label=_("Resource"), max_length=200, required=False)


@dataclass(frozen=True, slots=True)
class AuditEntryRow:
    entry: AuditEntryView
    who: str
    changes: list[DiffLine]
    action_url: str
    actor_url: str  # "": no filter for this actor
    target_url: str


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def entries(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = AuditFilterForm(request.GET)
    context: dict[str, Any] = {"form": form, "is_filtered": _is_filtered(request)}
    try:
        page = _found(request, member, form)
    except InvalidValue as error:
        context["error"] = translate_error(error)
        return render_page(request, member, _PAGE, context, part=_PART, status=400)
    context |= {"rows": [_row(entry) for entry in page.rows], "turning": page_links(request, page)}
    return render_page(request, member, _PAGE, context, part=_PART)


def _found(
    request: HttpRequest, member: CurrentMember, form: AuditFilterForm
) -> Page[AuditEntryView]:
    """Return a page of entries that match the form. Raises InvalidValue."""
    if not form.is_valid():
        raise InvalidValue("filter", "This cannot be filtered.")
    return list_entries(
        actor=member.actor,
        asked=_asked(member, form.cleaned_data),
        limit=_LIMIT,
        cursor=request.GET.get("cursor") or None,
        now=timezone.now(),
    )


def _asked(member: CurrentMember, cleaned: dict[str, Any]) -> AuditFilter:
    return AuditFilter(
        action=cleaned["action"] or None,
        actor=_actor(member, cleaned["actor"]),
        target=cleaned["target"] or None,
        since=begin_of(cleaned["first"]),
        until=end_of(cleaned["last"]),
    )


def _actor(member: CurrentMember, text: str) -> str | None:
    """Return the actor to filter by; an e-mail address means the member with it.

    An address of no member matches nothing, so that nobody can find out who else has an account on
    the platform.
    """
    if "@" not in text:
        return text or None
    found = find_member_by_email(actor=member.actor, email=text)
    return _NOBODY if found is None else found.user_id


def _is_filtered(request: HttpRequest) -> bool:
    return any(request.GET.get(name) for name in AuditFilterForm.base_fields)


def _row(entry: AuditEntryView) -> AuditEntryRow:
    actor = entry.actor_key or str(entry.actor_id or "")
    if entry.actor_kind is ActorKind.PLATFORM:
        actor = ActorKind.PLATFORM.value
    return AuditEntryRow(
        entry=entry,
        who=_who(entry),
        changes=diff_lines(entry.before, entry.after),
        action_url=page_url("audit", action=entry.action),
        actor_url=page_url("audit", actor=actor) if actor else "",
        target_url=page_url("audit", target=entry.target),
    )


def _who(entry: AuditEntryView) -> str:
    if entry.actor_email:
        return entry.actor_email
    if entry.actor_key:
        return entry.actor_key
    if entry.actor_kind is ActorKind.PLATFORM:
        return gettext("Platform")
    return gettext("Erased user")
