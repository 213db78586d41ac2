"""The audit log: its entries, newest first, and its verification.

Reading entries is itself recorded as an entry.
"""

import uuid
from dataclasses import dataclass
from typing import Final

from django import forms
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.diff_lines import DiffLine, diff_lines
from console.layout.htmx import render_page
from console.layout.lists.date_range_form import DateRangeForm, begin_of, end_of
from console.layout.lists.list_page import ListPage, ListQuery
from console.layout.lists.pagination import page_url
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.base.signatures.signing_keys import signing_keys
from tenants.identity.members.queries import find_member_by_email
from tenants.security.audit.chain_check import MAX_ENTRIES, check_chain
from tenants.security.audit.queries import AuditEntryView, AuditFilter, list_entries
from tenants.security.authorization.actor import ActorKind

_VERIFY_PAGE: Final = "console/audit/verify.html"

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


def _find_entries(query: ListQuery) -> Page[AuditEntryRow]:
    filters = query.filters
    page = list_entries(
        actor=query.actor,
        audit_filter=AuditFilter(
            action=filters["action"] or None,
            actor=_resolve_actor(query.member, filters["actor"]),
            target=filters["target"] or None,
            since=begin_of(filters["first"]),
            until=end_of(filters["last"]),
        ),
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    return map_page(page, _present_entry)


def _resolve_actor(member: CurrentMember, text: str) -> str | None:
    """Return the actor to filter by; an e-mail address means the member with it.

    An address of no member matches nothing, so that nobody can find out who else has an account on
    the platform.
    """
    if "@" not in text:
        return text or None
    actor_member = find_member_by_email(actor=member.actor, email=text)
    return _NOBODY if actor_member is None else actor_member.user_id


def _present_entry(entry: AuditEntryView) -> AuditEntryRow:
    actor = entry.actor_key or str(entry.actor_id or "")
    if entry.actor_kind is ActorKind.PLATFORM:
        actor = ActorKind.PLATFORM.value
    return AuditEntryRow(
        entry=entry,
        who=_name_actor(entry),
        changes=diff_lines(entry.before, entry.after),
        action_url=page_url("audit", action=entry.action),
        actor_url=page_url("audit", actor=actor) if actor else "",
        target_url=page_url("audit", target=entry.target),
    )


def _name_actor(entry: AuditEntryView) -> str:
    if entry.actor_email:
        return entry.actor_email
    if entry.actor_key:
        return entry.actor_key
    if entry.actor_kind is ActorKind.PLATFORM:
        return gettext("Platform")
    return gettext("Erased user")


_ENTRIES: Final = ListPage(
    template="console/audit/list.html",
    fragment="console/audit/_list.html",
    query=_find_entries,
    page_rows=50,
    form=AuditFilterForm,
    shows_errors=True,
)


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def entries(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _ENTRIES.render(request, member)


class _StartForm(forms.Form):
    after = forms.IntegerField(required=False)  # None: the newest entries


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.READ_AUDIT)
def check(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        return render_page(request, member, _VERIFY_PAGE, {})
    keys, form = signing_keys().public_keys(), _StartForm(request.POST)
    if not form.is_valid():
        raise BadRequest("This entry does not exist.")
    try:
        checked = check_chain(
            actor=member.actor, keys=keys, now=timezone.now(), after=form.cleaned_data["after"]
        )
    except InvalidValue as error:
        raise BadRequest(error.message) from error
    except Conflict:
        return render_page(request, member, _VERIFY_PAGE, {"is_busy": True}, status=409)
    return render_page(
        request, member, _VERIFY_PAGE, {"checked": checked, "max_entries": MAX_ENTRIES}
    )
