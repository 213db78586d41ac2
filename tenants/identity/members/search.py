"""Search for members by name, e-mail address, role or team, with a sort order."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Lower

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, Role
from tenants.base.sorted_pagination import SortOrder, fetch_sorted_page
from tenants.base.validation.text import is_storable
from tenants.identity.members.directory import MemberDirectoryRow, build_directory_rows
from tenants.models import ApiKey, Membership, TeamMembership
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow, build_member_row


class MemberOrder(StrEnum):
    EMAIL = "email"
    SINCE = "since"  # beginning of the membership


_SORT_ORDERS: Final = MappingProxyType(
    {
        MemberOrder.EMAIL: SortOrder(Lower("user__email")),
        MemberOrder.SINCE: SortOrder(F("created_at"), is_time=True),
    }
)


@dataclass(frozen=True, slots=True)
class MemberFilter:
    """A filter of members. None and "": not filtered."""

    text: str = ""  # part of the name or the e-mail address
    role: Role | None = None
    team_id: UUID | None = None  # a team of another tenant has no members
    not_in_team_id: UUID | None = None  # members who are not in this team
    idle_since: datetime | None = None  # members whose keys were not used since this time
    order: MemberOrder = MemberOrder.EMAIL
    is_descending: bool = False


def search_members(
    *, actor: Actor, member_filter: MemberFilter, limit: int, cursor: str | None
) -> Page[MemberRow]:
    """Return a page of members. One query. Raises Forbidden, and InvalidValue for a bad cursor."""
    actor.require(Permission.READ_MEMBERS)
    order = replace(_SORT_ORDERS[member_filter.order], is_descending=member_filter.is_descending)
    with tenant_scope(actor.tenant_id):
        page = fetch_sorted_page(
            _filter_members(actor, member_filter), order=order, limit=limit, cursor=cursor
        )
    return Page([build_member_row(row) for row in page.rows], page.next_cursor)


def find_directory(
    *, actor: Actor, member_filter: MemberFilter, limit: int, cursor: str | None
) -> Page[MemberDirectoryRow]:
    """Return a page of members with teams and sign-in methods. Five queries.

    Raises the errors of search_members.
    """
    page = search_members(actor=actor, member_filter=member_filter, limit=limit, cursor=cursor)
    return Page(build_directory_rows(actor.tenant_id, page.rows), page.next_cursor)


def find_member_by_email(*, actor: Actor, email: str) -> MemberRow | None:
    """Return the member with this e-mail address, or None. One query. Raises Forbidden."""
    actor.require(Permission.READ_MEMBERS)
    if not is_storable(email):
        return None
    with tenant_scope(actor.tenant_id):
        row = (
            _list_current_members(actor)
            .filter(user__email=email.strip().lower())
            .order_by("user_id")
            .first()
        )
    return None if row is None else build_member_row(row)


def list_emails(*, actor: Actor, limit: int) -> list[str]:
    """Return the first `limit` e-mail addresses of members, sorted. One query. Raises Forbidden."""
    actor.require(Permission.READ_MEMBERS)
    memberships = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
    emails = memberships.order_by(Lower("user__email")).values_list("user__email", flat=True)
    with tenant_scope(actor.tenant_id):
        return list(emails[:limit])


def _filter_members(actor: Actor, member_filter: MemberFilter) -> QuerySet[Membership]:
    memberships = _list_current_members(actor)
    if member_filter.role is not None:
        memberships = memberships.filter(role=member_filter.role)
    if member_filter.team_id is not None:
        memberships = memberships.filter(
            user_id__in=_filter_team_users(actor, member_filter.team_id)
        )
    if member_filter.not_in_team_id is not None:
        memberships = memberships.exclude(
            user_id__in=_filter_team_users(actor, member_filter.not_in_team_id)
        )
    if member_filter.idle_since is not None:
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, owner_id=OuterRef("user_id"))
        used_keys = keys.filter(last_used_at__gte=member_filter.idle_since)
        memberships = memberships.exclude(Exists(used_keys))
    text = member_filter.text.strip()
    if not is_storable(text):
        return memberships.none()
    if not text:
        return memberships
    return memberships.filter(Q(user__email__icontains=text) | Q(user__name__icontains=text))


def _list_current_members(actor: Actor) -> QuerySet[Membership]:
    # A membership has no ID of its own. The user's ID determines its position in pages.
    return (
        Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
        .select_related("user")
        .annotate(id=F("user_id"))
    )


def _filter_team_users(actor: Actor, team_id: UUID) -> QuerySet[TeamMembership, UUID]:
    in_team = TeamMembership.objects.filter(tenant_id=actor.tenant_id, team_id=team_id)
    return in_team.values_list("user_id", flat=True)
