"""Queries of tenants for operators: the directory, and the details of a tenant.

An operator must give a reason to read the details. The queries return nothing that the tenant's
users have written, except the tenant's name: no names of keys or users, no prompts, no policies. A
new field must be one that operators may see for every tenant.
"""

import uuid
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from django.db.models import Count

from caret.contracts.api_key import KeyKind
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Role
from tenants.base.validation.text import is_storable
from tenants.compliance.tenant_closing import TenantClosure, find_closure
from tenants.fleet.operators.operations import require_tenant_reason
from tenants.fleet.snapshots.platform_limits import PlatformLimits
from tenants.identity.members.operations import is_slug
from tenants.models import ApiKey, Membership, PolicyVersion, Subscription, Tenant
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor

MAX_KEYS: Final = 50
MAX_VERSIONS: Final = 20


@dataclass(frozen=True, slots=True)
class TenantDirectoryRow:
    tenant_id: TenantId
    slug: str
    name: str
    status: TenantStatus
    region: str
    trial_ends_on: date | None  # last day with completions; None: no trial
    closes_at: datetime | None  # end of the grace period; None: not closing
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key of a tenant."""

    lookup_id: LookupId
    kind: KeyKind
    created_at: datetime
    expires_at: datetime | None  # None: never
    revoked_at: datetime | None  # None: in force
    last_used_at: datetime | None  # None: never used


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a tenant's policy."""

    version: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TenantDetails:
    tenant: TenantDirectoryRow
    platform_limits: PlatformLimits
    plans: list[tuple[date, str]]  # first day and plan, newest first
    members: dict[Role, int]  # number of members by role
    num_keys: int  # all keys, expired and revoked ones included
    keys: list[KeyRow]  # newest first, at most MAX_KEYS
    policy_versions: list[VersionRow]  # newest first, at most MAX_VERSIONS
    closure: TenantClosure


def list_directory(*, search: str, limit: int, cursor: str | None) -> Page[TenantDirectoryRow]:
    """Return a page of tenants whose slug begins with `search`, newest first; "": all tenants.

    One query. Raises InvalidValue.
    """
    tenants = Tenant.objects.all()
    if search:
        can_match = is_storable(search)
        tenants = tenants.filter(slug__startswith=search) if can_match else tenants.none()
    rows = fetch_page_rows(tenants, limit=limit, after=decode_cursor(cursor))
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, _to_directory_row)


def list_all_tenants() -> list[TenantDirectoryRow]:
    """Return all tenants, oldest first."""
    return [_to_directory_row(row) for row in Tenant.objects.order_by("created_at", "id")]


def find_by_slug(slug: str) -> TenantDirectoryRow:
    """Return the directory entry of the tenant with this slug. Raises NotFound."""
    row = Tenant.objects.filter(slug=slug).order_by("id").first() if is_slug(slug) else None
    if row is None:
        # Escape unprintable characters, and remove the quotes that `ascii` adds.
        raise NotFound("The tenant {slug} does not exist.", slug=ascii(slug)[1:-1])
    return _to_directory_row(row)


def find_in_directory(tenant_id: str) -> TenantDirectoryRow:
    """Return the directory entry of the tenant with this ID. Raises NotFound."""
    try:
        return _to_directory_row(Tenant.objects.get(id=uuid.UUID(tenant_id)))
    except (Tenant.DoesNotExist, ValueError) as error:
        raise NotFound("This tenant does not exist.") from error


def read_tenant_details(*, actor: Actor, reason: str, now: datetime) -> TenantDetails:
    """Return a tenant's details, and record the read with its reason in the tenant's audit log.

    Raises InvalidValue, NotFound.
    """
    reason = require_tenant_reason(reason)
    row = find_in_directory(actor.tenant_id)
    with tenant_scope(actor.tenant_id):
        tenant_row = Tenant.objects.get(id=actor.tenant_id)
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id)
        details = TenantDetails(
            tenant=row,
            platform_limits=PlatformLimits(
                tenant_row.max_concurrent_completions, tenant_row.max_requests_per_minute
            ),
            plans=_list_plans(actor.tenant_id),
            members=_count_members(actor.tenant_id),
            num_keys=keys.count(),
            keys=[_to_key_row(key) for key in keys.order_by("-created_at", "-id")[:MAX_KEYS]],
            policy_versions=_list_versions(actor.tenant_id),
            closure=find_closure(tenant_id=actor.tenant_id),
        )
        record_read(
            actor=actor,
            action="operator.looked",
            target=f"tenant:{row.slug}",
            reason=reason,
            now=now,
        )
    return details


def _list_plans(tenant_id: TenantId) -> list[tuple[date, str]]:
    subscriptions = Subscription.objects.filter(tenant_id=tenant_id).order_by("-starts_on")
    return list(subscriptions.values_list("starts_on", "plan__slug"))


def _count_members(tenant_id: TenantId) -> dict[Role, int]:
    memberships = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
    counts = memberships.values_list("role").annotate(num=Count("user_id")).order_by("role")
    return {Role(role): num for role, num in counts}


def _list_versions(tenant_id: TenantId) -> list[VersionRow]:
    versions = PolicyVersion.objects.filter(tenant_id=tenant_id).order_by("-version")
    rows = versions.values_list("version", "created_at")[:MAX_VERSIONS]
    return [VersionRow(version, at) for version, at in rows]


def _to_key_row(key: ApiKey) -> KeyRow:
    return KeyRow(
        lookup_id=LookupId(key.lookup_id),
        kind=KeyKind(key.kind),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
    )


def _to_directory_row(row: Tenant) -> TenantDirectoryRow:
    return TenantDirectoryRow(
        tenant_id=TenantId(str(row.id)),
        slug=row.slug,
        name=row.name,
        status=TenantStatus(row.status),
        region=row.region,
        trial_ends_on=row.trial_ends_on,
        closes_at=row.closes_at,
        created_at=row.created_at,
    )
