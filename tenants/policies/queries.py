"""Reads policies."""

from dataclasses import dataclass
from datetime import datetime

from caret.contracts.policy import TenantPolicy
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from tenants.errors import NotFound
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.models import PolicyVersion
from tenants.policies.document import read_policy


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    version: int  # from 1
    policy: TenantPolicy
    author_email: str | None  # None: the platform itself
    reason: str
    created_at: datetime


def get_policy(*, actor: Actor) -> PolicyInForce:
    """Raises Forbidden. One query."""
    actor.require(Permission.READ_POLICY)
    return find_policy(tenant_id=actor.tenant_id)


def find_policy(*, tenant_id: TenantId) -> PolicyInForce:
    """For the platform itself: asks no role. Raises NotFound."""
    with tenant(tenant_id):
        row = (
            PolicyVersion.objects.filter(tenant_id=tenant_id)
            .select_related("author")
            .order_by("-version")
            .first()
        )
    if row is None:
        raise NotFound("The tenant has no policy.")
    return PolicyInForce(
        version=row.version,
        policy=read_policy(row.document),
        author_email=None if row.author is None else row.author.email,
        reason=row.reason,
        created_at=row.created_at,
    )
