"""The pages of the audit log: the entries as sentences, newest first, and the verification.

Each read and each verification adds an entry to the audit log.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.diff_lines import DiffLine, diff_lines
from console.layout.htmx import render_page
from console.layout.lists.date_range_form import DateRangeForm, begin_of, end_of
from console.layout.lists.list_page import ListPage, ListQuery
from console.layout.lists.long_select import LongSelect
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.audit.sentences import (
    ACTIONS,
    AREAS,
    list_references,
    name_actor,
    name_target,
    write_pattern,
    write_sentence,
)
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.identity.members.search import find_member_by_email, list_emails
from tenants.identity.teams.search import TeamFilter, find_teams, list_team_names
from tenants.security.audit.chain_check import MAX_ENTRIES, check_chain
from tenants.security.audit.queries import AuditEntryView, AuditFilter, list_entries
from tenants.security.audit.resource_names import find_resource_names
from tenants.security.authorization.actor import ActorKind

_VERIFY_PAGE: Final = "console/audit/verify.html"

_NOBODY: Final = str(uuid.UUID(int=0))  # an ID that no user has
_MAX_ACTION_CHARS: Final = 60
# Suggestions for the filter by target: all targets of one kind.
_TARGET_KINDS: Final[Mapping[str, Promise]] = {
    "user:*": _("All members"),
    "invitation:*": _("All invitations"),
    "team:*": _("All teams"),
    "key:*": _("All API keys"),
    "policy:*": _("All policies"),
    "budget:*": _("All budgets"),
    "invoice:*": _("All invoices"),
    "retention:*": _("All retention periods"),
    "hold:*": _("All legal holds"),
    "export:*": _("All exports"),
    "audit_sink:*": _("All audit sinks"),
    "domain:*": _("All domains"),
}


class _ActionField(forms.ChoiceField):
    """A list of known actions by area. A link may also filter by an action that is not listed."""

    def valid_value(self, value: object) -> bool:
        return len(str(value)) <= _MAX_ACTION_CHARS


class AuditFilterForm(DateRangeForm):
    action = _ActionField(label=_("Action"), required=False, widget=LongSelect)
    actor = forms.CharField(label=_("Person"), max_length=254, required=False)
    target = forms.CharField(label=_("Object"), max_length=200, required=False)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        requested_action = data.get("action", "")
        action = self.fields["action"]
        assert isinstance(action, forms.ChoiceField)
        action.choices = _list_actions(requested_action)
        for name, datalist in (("actor", "audit-actors"), ("target", "audit-targets")):
            self.fields[name].widget.attrs |= {"list": datalist, "autocomplete": "off"}


def _list_actions(requested_action: str) -> list[tuple[str, Any]]:
    """Return the choices by area. An unknown action that a link requests is added at the end."""
    choices: list[tuple[str, Any]] = [("", gettext("All"))]
    options = set(ACTIONS)
    for area in AREAS:
        prefixes = sorted({f"{action.partition('.')[0]}.*" for action in area.sentences})
        options.update(prefixes)
        group = [(prefix, gettext("All: %(prefix)s") % {"prefix": prefix}) for prefix in prefixes]
        group += [(action, write_pattern(action)) for action in area.sentences]
        choices.append((str(area.title), group))
    if requested_action and requested_action not in options:
        choices.append((requested_action, requested_action))
    return choices


@dataclass(frozen=True, slots=True)
class AuditEntryRow:
    entry: AuditEntryView
    sentence: SafeString  # HTML
    actor_name: str
    target_name: str
    changes: list[DiffLine]
    # URLs of the audit log, filtered by the action, the actor or the target of the entry.
    action_url: str
    actor_url: str  # "": entries cannot be filtered by this actor
    target_url: str


def _find_entries(query: ListQuery) -> Page[AuditEntryRow]:
    filters = query.filters
    page = list_entries(
        actor=query.actor,
        audit_filter=AuditFilter(
            action=filters["action"] or None,
            actor=_resolve_actor(query.member, filters["actor"]),
            target=_resolve_target(query.member, filters["target"]),
            since=begin_of(filters["first"]),
            until=end_of(filters["last"]),
        ),
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    references = {reference for entry in page.rows for reference in list_references(entry)}
    names = find_resource_names(actor=query.actor, references=references)
    url = reverse("console:audit")
    return map_page(page, lambda entry: _present_entry(entry, names, url))


def _resolve_actor(member: CurrentMember, text: str) -> str | None:
    """Return the actor to filter by; None: every actor. An e-mail address stands for a member.

    An address that no member has matches no entries. So nobody can find out which other people have
    an account in this installation.
    """
    if "@" not in text:
        return text or None
    actor_member = find_member_by_email(actor=member.actor, email=text)
    return _NOBODY if actor_member is None else actor_member.user_id


def _resolve_target(member: CurrentMember, text: str) -> str | None:
    """Return the target to filter by; None: every target.

    An e-mail address stands for the member with this address, and a name for the team with this
    name. Any other text is returned unchanged: "team:*" stands for all teams, and "audit" is a
    target without an ID.
    """
    if not text or ":" in text:
        return text or None
    if "@" in text:
        return f"user:{_resolve_actor(member, text)}"
    teams = find_teams(
        actor=member.actor, team_filter=TeamFilter(text=text), limit=MAX_PAGE, cursor=None
    )
    matches = [team for team in teams.rows if team.name.casefold() == text.casefold()]
    return f"team:{matches[0].id}" if matches else text


def _present_entry(entry: AuditEntryView, names: Mapping[str, str], url: str) -> AuditEntryRow:
    """Return the row of an entry. `names` maps references to names; `url` is the audit log's."""
    actor = entry.actor_key or str(entry.actor_id or "")
    if entry.actor_kind is ActorKind.PLATFORM:
        actor = ActorKind.PLATFORM.value
    return AuditEntryRow(
        entry=entry,
        sentence=write_sentence(entry, names),
        actor_name=name_actor(entry, names),
        target_name=name_target(entry, names),
        changes=diff_lines(entry.before, entry.after),
        action_url=f"{url}?{urlencode({'action': entry.action})}",
        actor_url=f"{url}?{urlencode({'actor': actor})}" if actor else "",
        target_url=f"{url}?{urlencode({'target': entry.target})}",
    )


def _list_suggestions(query: ListQuery, _page: Page[AuditEntryRow]) -> dict[str, Any]:
    """Return suggestions for the filters, as functions that query only if a template calls them.

    The whole page calls them. A reloaded list does not, because it contains no filters.
    """

    @cache  # the fields for the actor and the target both call it
    def emails() -> list[str]:
        return list_emails(actor=query.actor, limit=MAX_PAGE)

    def teams() -> list[str]:
        return list_team_names(actor=query.actor, limit=MAX_PAGE)

    return {"emails": emails, "teams": teams, "kinds": _TARGET_KINDS.items()}


_ENTRIES: Final = ListPage(
    template="console/audit/list.html",
    fragment="console/audit/_list.html",
    query=_find_entries,
    page_rows=50,
    form=AuditFilterForm,
    shows_errors=True,
    context=_list_suggestions,
)


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def entries(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _ENTRIES.render(request, member)


class _VerificationForm(forms.Form):
    # Number of the last entry of an earlier verification, which this one continues.
    # None: check_chain chooses the first entry.
    after = forms.IntegerField(required=False)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.READ_AUDIT)
def check(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        return render_page(request, member, _VERIFY_PAGE, {})
    public_keys, form = load_signing_keys().public_keys(), _VerificationForm(request.POST)
    if not form.is_valid():
        raise BadRequest("This entry does not exist.")
    try:
        verification = check_chain(
            actor=member.actor,
            keys=public_keys,
            now=timezone.now(),
            after=form.cleaned_data["after"],
        )
    except InvalidValue as error:
        raise BadRequest(error.message) from error
    except Conflict:
        # Another verification of the tenant is running.
        return render_page(request, member, _VERIFY_PAGE, {"is_busy": True}, status=409)
    return render_page(
        request, member, _VERIFY_PAGE, {"verification": verification, "max_entries": MAX_ENTRIES}
    )
