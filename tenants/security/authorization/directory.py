"""Reads of tenants, users and memberships without a permission check, for all domains."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope, user_scope
from tenants.base.errors import NotFound
from tenants.base.permissions import Role
from tenants.models import Membership, Tenant, User


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """A tenant, as one of its members sees it."""

    tenant_id: TenantId
    slug: str
    name: str
    status: TenantStatus
    role: Role
    is_mfa_required: bool  # when signing in with a password
    trial_ends_on: date | None  # last day with completions; None: no trial
    closes_at: datetime | None  # end of the grace period; None: not closing


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member, as other members of the tenant see them."""

    user_id: UserId
    email: str
    name: str
    role: Role
    created_at: datetime  # since when the user is a member


def find_memberships(*, user_id: UserId) -> list[MembershipRow]:
    """Return the tenants that the user is a member of, by name, without closed ones."""
    with user_scope(user_id):
        rows = (
            Membership.objects.filter(user_id=user_id, ended_at=None)
            .exclude(tenant__status=TenantStatus.CLOSED)
            .select_related("tenant")
            .order_by("tenant__name", "tenant_id")
        )
        return [_build_membership_row(row) for row in rows]


def list_members(*, tenant_id: TenantId) -> list[MemberRow]:
    """Return the current members, by e-mail address."""
    with tenant_scope(tenant_id):
        rows = (
            Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
            .select_related("user")
            .order_by("user__email")
        )
        return [build_member_row(row) for row in rows]


def find_membership(*, tenant_id: TenantId, user_id: UserId) -> Membership:
    """Return the row of a current member. Must run inside the tenant's scope. Raises NotFound."""
    try:
        return Membership.objects.select_related("user").get(
            tenant_id=tenant_id, user_id=UUID(user_id), ended_at=None
        )
    except (Membership.DoesNotExist, ValueError) as error:
        raise NotFound("This member does not exist.") from error


def find_tenant(*, slug: str) -> TenantId | None:
    tenant_id = Tenant.objects.filter(slug=slug).values_list("id", flat=True).first()
    return None if tenant_id is None else TenantId(str(tenant_id))


def list_tenants() -> dict[str, TenantId]:
    """Return all tenants by slug, including closed ones, oldest first. For tasks and commands."""
    rows = Tenant.objects.order_by("created_at", "id").values_list("slug", "id")
    return {slug: TenantId(str(tenant_id)) for slug, tenant_id in rows}


def find_user(*, email: str) -> UserId | None:
    user_id = User.objects.filter(email=email.strip().lower()).values_list("id", flat=True).first()
    return None if user_id is None else UserId(str(user_id))


def build_member_row(row: Membership) -> MemberRow:
    return MemberRow(
        user_id=UserId(str(row.user_id)),
        email=row.user.email,
        name=row.user.name,
        role=Role(row.role),
        created_at=row.created_at,
    )


def _build_membership_row(row: Membership) -> MembershipRow:
    return MembershipRow(
        tenant_id=TenantId(str(row.tenant_id)),
        slug=row.tenant.slug,
        name=row.tenant.name,
        status=TenantStatus(row.tenant.status),
        is_mfa_required=row.tenant.is_mfa_required,
        trial_ends_on=row.tenant.trial_ends_on,
        closes_at=row.tenant.closes_at,
        role=Role(row.role),
    )
