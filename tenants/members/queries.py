"""Reads tenants and memberships."""

from dataclasses import dataclass

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenancy import acting_user, tenant
from tenants.members.permissions import Role
from tenants.models import Membership, Tenant, User


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """A tenant, as one of its members sees it."""

    tenant_id: TenantId
    slug: str
    name: str
    status: TenantStatus
    role: Role


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member, as his tenant sees him."""

    user_id: UserId
    email: str
    role: Role


def find_memberships(*, user_id: UserId) -> list[MembershipRow]:
    """The tenants that a signed-in user may choose from, by name; closed ones are left out."""
    with acting_user(user_id):
        rows = (
            Membership.objects.filter(user_id=user_id)
            .exclude(tenant__status=TenantStatus.CLOSED)
            .select_related("tenant")
            .order_by("tenant__name", "tenant_id")
        )
        return [_membership_row(row) for row in rows]


def list_members(*, tenant_id: TenantId) -> list[MemberRow]:
    """By e-mail address."""
    with tenant(tenant_id):
        rows = (
            Membership.objects.filter(tenant_id=tenant_id)
            .select_related("user")
            .order_by("user__email")
        )
        return [MemberRow(UserId(str(row.user_id)), row.user.email, Role(row.role)) for row in rows]


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


def _membership_row(row: Membership) -> MembershipRow:
    return MembershipRow(
        tenant_id=TenantId(str(row.tenant_id)),
        slug=row.tenant.slug,
        name=row.tenant.name,
        status=TenantStatus(row.tenant.status),
        role=Role(row.role),
    )
