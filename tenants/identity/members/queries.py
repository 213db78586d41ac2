"""Queries of tenants and memberships."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F

from caret.contracts.policy import Isolation
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.models import Membership, TeamMembership, Tenant
from tenants.policy.queries import load_active_policy
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow, build_member_row, find_membership


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant, as its members see it."""

    slug: str
    name: str
    status: TenantStatus
    region: str
    isolation: Isolation  # of prefix caches, as the policy sets it
    created_at: datetime


def read_page_of_members(
    *, actor: Actor, limit: int, cursor: str | None, team_id: UUID | None = None
) -> Page[MemberRow]:
    """Return a page of members, newest first. With `team_id`, return only members of this team.

    A team of another tenant gives an empty page. One query. Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        memberships = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
        if team_id is not None:
            in_team = TeamMembership.objects.filter(tenant_id=actor.tenant_id, team_id=team_id)
            memberships = memberships.filter(user_id__in=in_team.values("user_id"))
        # A membership has no ID of its own. The user's ID determines its position in pages.
        with_id = memberships.select_related("user").annotate(id=F("user_id"))
        rows = fetch_page_rows(with_id, limit=limit, after=decode_cursor(cursor))
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.user_id)
    )
    return map_page(page, build_member_row)


def find_member(*, actor: Actor, user_id: UserId) -> MemberRow:
    """Return one member. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        row = find_membership(tenant_id=actor.tenant_id, user_id=user_id)
        return build_member_row(row)


def find_emails(*, actor: Actor, user_ids: Collection[UserId]) -> dict[UserId, str]:
    """Return the e-mail addresses of those users who are members. One query. Raises Forbidden."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        rows = Membership.objects.filter(
            tenant_id=actor.tenant_id,
            user_id__in=[UUID(user_id) for user_id in user_ids],
            ended_at=None,
        )
        pairs = list(rows.values_list("user_id", "user__email"))
    return {UserId(str(user_id)): email for user_id, email in pairs}


def get_tenant(*, actor: Actor) -> TenantView:
    """Return the actor's tenant. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_TENANT)
    with tenant_scope(actor.tenant_id):
        row = Tenant.objects.get(id=actor.tenant_id)
        isolation = load_active_policy(tenant_id=actor.tenant_id).isolation
    return TenantView(
        slug=row.slug,
        name=row.name,
        status=TenantStatus(row.status),
        region=row.region,
        isolation=isolation,
        created_at=row.created_at,
    )
