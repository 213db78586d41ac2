"""Markers that the seeding of a demonstration tenant has begun, and that it is complete.

A marker is an entry in the tenant's audit log. `require_demonstration` decides which tenants may be
seeded.
"""

from datetime import datetime
from typing import Final

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, NotFound
from tenants.demo.tenants import TENANT_NAMES
from tenants.demo.traffic.timeline import DemoTimeline
from tenants.models import AuditEntry, Tenant
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.directory import find_tenant, list_members

BEGUN, FILLED = "demonstration.begun", "demonstration.filled"  # actions of audit entries
SUFFIX: Final = " (demonstration)"  # of the tenant's name
_EMAIL_SUFFIX: Final = ".example"  # a top-level domain that RFC 2606 reserves
_REASON: Final = (
    "`manage.py seed_demo_data` generated this tenant's whole history, for demonstration."
)


def require_demonstration(slug: str) -> TenantId:
    """Check that the tenant may be seeded, and return its ID.

    Raises NotFound if the tenant does not exist. Raises Conflict if the tenant is not a
    demonstration tenant, if it has no members, or if a member may have a real e-mail address.
    """
    tenant_id = find_tenant(slug=slug)
    if tenant_id is None:
        raise NotFound("The tenant {slug} does not exist.", slug=slug)
    members = list_members(tenant_id=tenant_id)
    if slug not in TENANT_NAMES:
        raise Conflict("{slug} is not a demo tenant and was not changed.", slug=slug)
    if not members:
        raise Conflict("{slug} has no members, and was not changed.", slug=slug)
    if not all(member.email.endswith(_EMAIL_SUFFIX) for member in members):
        raise Conflict(
            "{slug} has members whose addresses do not end in .example, and was not changed.",
            slug=slug,
        )
    return tenant_id


def is_marked(tenant_id: TenantId, action: str) -> bool:
    """Check that the tenant has a marker. `action` is BEGUN or FILLED."""
    with tenant_scope(tenant_id):
        return AuditEntry.objects.filter(tenant_id=tenant_id, action=action).exists()


def mark_begun(timeline: DemoTimeline) -> None:
    """Mark that seeding has begun, and add the suffix to the tenant's name.

    Set the tenant's creation time to six days before the period, unless the tenant is older. Its
    users and teams are created in the days between.
    """
    made_at = timeline.moment_before(days=6)
    with tenant_scope(timeline.tenant_id):
        row = Tenant.objects.select_for_update(no_key=True).get(id=timeline.tenant_id)
        name = row.name.removesuffix(SUFFIX) + SUFFIX
        Tenant.objects.filter(id=timeline.tenant_id).update(
            name=name, created_at=min(row.created_at, made_at)
        )
        _record(timeline, BEGUN, ({"name": row.name}, {"name": name}), made_at)


def mark_filled(timeline: DemoTimeline, row_counts: dict[str, int]) -> None:
    with tenant_scope(timeline.tenant_id):
        _record(timeline, FILLED, (None, {"seed": timeline.seed, **row_counts}), timeline.now)


def _record(
    timeline: DemoTimeline,
    action: str,
    change: tuple[ChangeFields | None, ChangeFields | None],  # fields before and after
    now: datetime,
) -> None:
    record_change(
        actor=timeline.platform,
        action=action,
        target=f"tenant:{timeline.slug}",
        change=change,
        reason=_REASON,
        now=now,
    )
