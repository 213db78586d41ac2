"""Markers of demonstration tenants: whether a tenant may be seeded, and whether it was."""

from datetime import datetime
from typing import Final

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, NotFound
from tenants.demo.tenants import NAMES
from tenants.demo.traffic.timeline import DemoTimeline
from tenants.models import AuditEntry, Tenant
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.directory import find_tenant, list_members

BEGUN, FILLED = "demonstration.begun", "demonstration.filled"
SUFFIX: Final = " (demonstration)"
_DOMAIN: Final = ".example"  # reserved by RFC 2606
_REASON: Final = (
    "`manage.py seed_demo_data` generated this tenant's whole history, for demonstration."
)


def require_demonstration(slug: str) -> TenantId:
    """Return the tenant, if it is a demonstration tenant and no member has a real address.

    Raises NotFound, Conflict.
    """
    tenant_id = find_tenant(slug=slug)
    if tenant_id is None:
        raise NotFound("The tenant {slug} does not exist.", slug=slug)
    members = list_members(tenant_id=tenant_id)
    if slug not in NAMES or not members:
        raise Conflict("{slug} is not a demo tenant and was not changed.", slug=slug)
    if not all(member.email.endswith(_DOMAIN) for member in members):
        raise Conflict("{slug} has members that are not demo users and was not changed.", slug=slug)
    return tenant_id


def is_marked(tenant_id: TenantId, action: str) -> bool:
    with tenant_scope(tenant_id):
        return AuditEntry.objects.filter(tenant_id=tenant_id, action=action).exists()


def mark_begun(timeline: DemoTimeline) -> None:
    """Mark that seeding has begun: add the suffix to the name, and backdate the creation."""
    made_at = timeline.moment_before(6)
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
    change: tuple[ChangeFields | None, ChangeFields | None],
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
