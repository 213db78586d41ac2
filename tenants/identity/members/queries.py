"""Reads tenants and memberships."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F

from caret.contracts.policy import Isolation
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope, user_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    fetch_first,
    map_page,
    read_cursor,
)
from tenants.base.permissions import Permission, Role
from tenants.models import Membership, TeamMembership, Tenant, User
from tenants.policy.queries import find_policy
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """A tenant, as one of its members sees it."""

    tenant_id: TenantId
    slug: str
    name: str
    status: TenantStatus
    role: Role
    requires_second_factor: bool  # of who signs in by a password


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member, as his tenant sees him."""

    user_id: UserId
    email: str
    name: str
    role: Role
    created_at: datetime  # member since


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant, as its own people see it."""

    slug: str
    name: str
    status: TenantStatus
    region: str
    # The policy's; that a pool is dedicated to the tenant is known by the catalogue of pools alone.
    isolation: Isolation
    created_at: datetime


def find_memberships(*, user_id: UserId) -> list[MembershipRow]:
    """The tenants that a signed-in user may choose from, by name; closed ones are left out."""
    with user_scope(user_id):
        rows = (
            Membership.objects.filter(user_id=user_id, ended_at=None)
            .exclude(tenant__status=TenantStatus.CLOSED)
            .select_related("tenant")
            .order_by("tenant__name", "tenant_id")
        )
        return [_membership_row(row) for row in rows]


def list_members(*, tenant_id: TenantId) -> list[MemberRow]:
    """By e-mail address."""
    with tenant_scope(tenant_id):
        rows = (
            Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
            .select_related("user")
            .order_by("user__email")
        )
        return [member_row(row) for row in rows]


def page_of_members(
    *, actor: Actor, limit: int, cursor: str | None, team_id: UUID | None = None
) -> Page[MemberRow]:
    """Newest first; with `team_id` those of one team, none for a team that is not the tenant's.
    Raises Forbidden, Invalid. One query."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        found = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None)
        if team_id is not None:
            in_team = TeamMembership.objects.filter(tenant_id=actor.tenant_id, team_id=team_id)
            found = found.filter(user_id__in=in_team.values("user_id"))
        # A membership has no id of its own: its user's takes the place.
        placed = found.select_related("user").annotate(id=F("user_id"))
        rows = fetch_first(placed, limit=limit, after=read_cursor(cursor))
    page = build_page(
        rows, limit=limit, place=lambda row: PagePosition(row.created_at, row.user_id)
    )
    return map_page(page, member_row)


def find_member(*, actor: Actor, user_id: UserId) -> MemberRow:
    """Raises Forbidden, NotFound."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        row = find_membership(tenant_id=actor.tenant_id, user_id=user_id)
        return member_row(row)


def find_member_by_email(*, actor: Actor, email: str) -> MemberRow | None:
    """None: nobody with this address is a member now. Raises Forbidden. One query."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        row = (
            Membership.objects.select_related("user")
            .filter(tenant_id=actor.tenant_id, user__email=email.strip().lower(), ended_at=None)
            .order_by("user_id")
            .first()
        )
        return None if row is None else member_row(row)


def emails_of(*, actor: Actor, user_ids: Collection[UserId]) -> dict[UserId, str]:
    """Of those who are members now. Raises Forbidden. One query."""
    actor.require(Permission.READ_MEMBERS)
    with tenant_scope(actor.tenant_id):
        rows = Membership.objects.filter(
            tenant_id=actor.tenant_id, user_id__in=[UUID(each) for each in user_ids], ended_at=None
        )
        pairs = list(rows.values_list("user_id", "user__email"))
    return {UserId(str(user_id)): email for user_id, email in pairs}


def find_membership(*, tenant_id: TenantId, user_id: UserId) -> Membership:
    """The row of who is a member now, inside the tenant's scope. Raises NotFound."""
    try:
        return Membership.objects.select_related("user").get(
            tenant_id=tenant_id, user_id=UUID(user_id), ended_at=None
        )
    except (Membership.DoesNotExist, ValueError) as error:
        raise NotFound("There is no such member.") from error


def get_tenant(*, actor: Actor) -> TenantView:
    """Raises Forbidden, NotFound."""
    actor.require(Permission.READ_TENANT)
    with tenant_scope(actor.tenant_id):
        row = Tenant.objects.get(id=actor.tenant_id)
        isolation = find_policy(tenant_id=actor.tenant_id).policy.isolation
    return TenantView(
        slug=row.slug,
        name=row.name,
        status=TenantStatus(row.status),
        region=row.region,
        isolation=isolation,
        created_at=row.created_at,
    )


def find_tenant(*, slug: str) -> TenantId | None:
    tenant_id = Tenant.objects.filter(slug=slug).values_list("id", flat=True).first()
    return None if tenant_id is None else TenantId(str(tenant_id))


def list_tenants() -> dict[str, TenantId]:
    """All of them, by slug, oldest first: for what the platform's operator asks of each."""
    rows = Tenant.objects.order_by("created_at", "id").values_list("slug", "id")
    return {slug: TenantId(str(tenant_id)) for slug, tenant_id in rows}


def find_user(*, email: str) -> UserId | None:
    user_id = User.objects.filter(email=email.strip().lower()).values_list("id", flat=True).first()
    return None if user_id is None else UserId(str(user_id))


def member_row(row: Membership) -> MemberRow:
    return MemberRow(
        user_id=UserId(str(row.user_id)),
        email=row.user.email,
        name=row.user.name,
        role=Role(row.role),
        created_at=row.created_at,
    )


def _membership_row(row: Membership) -> MembershipRow:
    return MembershipRow(
        tenant_id=TenantId(str(row.tenant_id)),
        slug=row.tenant.slug,
        name=row.tenant.name,
        status=TenantStatus(row.tenant.status),
        requires_second_factor=row.tenant.requires_second_factor,
        role=Role(row.role),
    )
