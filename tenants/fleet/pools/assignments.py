"""Assignment of pools to tenants, by tier and language. Gateways follow within a second.

The gateways' pools file defines the pools. Operators choose which pool serves a tenant, for all
languages or for one, and whether other tenants may use the pool. Without an assignment, the first
shared pool of the tier serves the tenant.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import ANY_LANGUAGE, Tier
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.validation.text import require_reason
from tenants.fleet.pools.scraping.gateway_scraper import Scrape, scrape_gateways
from tenants.fleet.pools.scraping.metric_samples import merge_samples
from tenants.identity.tenant_lifecycle import NewTenant, OnboardedTenant, onboard_tenant
from tenants.models import PoolAssignment, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

_LOCK: Final = "pool assignments"  # name of the advisory lock
_CREATION_REASON: Final = "Chosen when the tenant was created."


class PoolSharing(StrEnum):
    """The sharing of a pool among tenants, as the gateways' pools file states it."""

    DEFAULT = "default"  # first shared pool of its tier: serves all tenants without an assignment
    SHARED = "shared"  # another shared pool: can be assigned, also as a dedicated pool
    DEDICATED = "dedicated"  # serves only the tenants that the file names


@dataclass(frozen=True, slots=True)
class KnownPool:
    """A pool as the gateways report it."""

    name: str
    tier: Tier
    model: str
    sharing: PoolSharing


@dataclass(frozen=True, slots=True)
class NewAssignment:
    pool: str
    language: str = ANY_LANGUAGE  # an identifier of LANGUAGES, or ANY_LANGUAGE
    is_dedicated: bool = False  # True: no other tenant may use the pool


@dataclass(frozen=True, slots=True)
class AssignmentView:
    slug: str  # of the tenant
    tier: Tier
    language: str  # ANY_LANGUAGE: all languages without an assignment of their own
    pool: str
    is_dedicated: bool
    created_at: datetime


def read_known_pools() -> dict[str, KnownPool]:
    """Ask the gateways for their pools, and return them by name. Empty: no gateway answers."""
    return collect_known_pools(scrape_gateways())


def collect_known_pools(scrapes: Iterable[Scrape]) -> dict[str, KnownPool]:
    """Return the pools that at least one scraped gateway reports, by name."""
    samples = merge_samples(scrape.samples for scrape in scrapes if scrape.samples is not None)
    sharing = {
        labels["pool"]: PoolSharing(labels["sharing"])
        for labels, _ in samples.all_values("caret_pool_sharing")
    }
    return {
        labels["pool"]: KnownPool(
            name=labels["pool"],
            tier=Tier(labels["tier"]),
            model=labels["model"],
            # If the sharing is not reported, the pool cannot be dedicated to a tenant.
            sharing=sharing.get(labels["pool"], PoolSharing.DEFAULT),
        )
        for labels, _ in samples.all_values("caret_pool")
    }


def assign_pool(
    *,
    actor: Actor,
    assignment: NewAssignment,
    known_pools: Mapping[str, KnownPool],
    reason: str,
    now: datetime,
) -> AssignmentView:
    """Let a pool serve the tenant's requests in the pool's tier and the given language.

    The assignment replaces the earlier one of this tier and language. `known_pools` are the
    gateways' pools (`read_known_pools`). Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    reason = require_reason(reason)
    pool = find_known_pool(known_pools, assignment.pool)
    _check_assignment(assignment, pool)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        _lock_assignments()
        _require_free(actor.tenant_id, assignment)
        rows = PoolAssignment.objects.filter(
            holder_id=UUID(actor.tenant_id), tier=pool.tier, language=assignment.language
        )
        before = rows.order_by("id").first()
        rows.delete()
        row = PoolAssignment.objects.create(
            holder_id=actor.tenant_id,
            tier=pool.tier,
            language=assignment.language,
            pool=pool.name,
            is_dedicated=assignment.is_dedicated,
            created_at=now,
        )
        slug = Tenant.objects.values_list("slug", flat=True).get(id=actor.tenant_id)
        record_change(
            actor=actor,
            action="tenant.pool_assigned",
            target=f"tenant:{slug}",
            change=(None if before is None else _to_change_fields(before), _to_change_fields(row)),
            reason=reason,
            now=now,
        )
    return _to_view(row, slug)


def onboard_in_pools(
    *,
    new: NewTenant,
    pools: Sequence[str],
    actor_for: Callable[[TenantId], Actor],
    now: datetime,
) -> OnboardedTenant:
    """Create a tenant as `onboard_tenant` does, and assign `pools` to it for all languages.

    If one step fails, nothing is changed. `pools` are names of pools, at most one of each tier.
    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    names = sorted({name.strip() for name in pools if name.strip()})
    known_pools = read_known_pools() if names else {}
    tiers = [find_known_pool(known_pools, name).tier for name in names]
    if duplicate := next((tier for tier in tiers if tiers.count(tier) > 1), None):
        raise InvalidValue("pool", "Choose at most one pool of the tier {tier}.", tier=duplicate)

    def assign(actor: Actor) -> None:
        for name in names:
            assignment = NewAssignment(name)
            assign_pool(
                actor=actor,
                assignment=assignment,
                known_pools=known_pools,
                reason=_CREATION_REASON,
                now=now,
            )

    return onboard_tenant(new=new, actor_for=actor_for, configure=assign, now=now)


def unassign_pool(*, actor: Actor, tier: Tier, language: str, reason: str, now: datetime) -> None:
    """Delete the assignment of a tier and a language.

    Afterwards, the tenant's pool for all languages serves these requests. If there is none, the
    first shared pool of the tier does. Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        rows = PoolAssignment.objects.filter(
            holder_id=UUID(actor.tenant_id), tier=tier, language=language
        )
        before = rows.order_by("id").first()
        if before is None:
            raise NotFound("The tenant has no such assignment.")
        rows.delete()
        slug = Tenant.objects.values_list("slug", flat=True).get(id=actor.tenant_id)
        record_change(
            actor=actor,
            action="tenant.pool_unassigned",
            target=f"tenant:{slug}",
            change=(_to_change_fields(before), None),
            reason=reason,
            now=now,
        )


def list_assignments(*, tenant_id: TenantId) -> list[AssignmentView]:
    """Return the assignments of one tenant, by tier and language."""
    return _list_views(PoolAssignment.objects.filter(holder_id=UUID(tenant_id)))


def list_all_assignments() -> list[AssignmentView]:
    """Return the assignments of all tenants, by tenant, tier and language. For operators only."""
    return _list_views(PoolAssignment.objects.all())


def find_known_pool(known_pools: Mapping[str, KnownPool], name: str) -> KnownPool:
    """Return the pool with this name.

    Raises InvalidValue if the pool is unknown, and Conflict if no gateway has reported its pools.
    """
    if not known_pools:
        raise Conflict(
            "No gateway reports its pools. Try again in a minute, unless CARET_METRICS_PORT is 0."
        )
    if name not in known_pools:
        raise InvalidValue(
            "pool", "Choose one of these pools: {names}.", names=", ".join(known_pools)
        )
    return known_pools[name]


def _check_assignment(assignment: NewAssignment, pool: KnownPool) -> None:
    """Check the language, and that the pools file allows the assignment.

    Raises InvalidValue, Conflict.
    """
    if assignment.language not in {ANY_LANGUAGE, *LANGUAGES}:
        raise InvalidValue(
            "language", 'Enter the identifier of a language, such as python, or "*" for all.'
        )
    if pool.sharing is PoolSharing.DEDICATED:
        raise Conflict(
            "The gateways' pools file names the tenants of this pool. Change the file instead."
        )
    if assignment.is_dedicated and pool.sharing is PoolSharing.DEFAULT:
        raise Conflict(_SERVES_ALL, pool=pool.name)


_SERVES_ALL: Final = gettext_noop(
    "{pool} serves all tenants without an assignment, so it cannot be dedicated. List another "
    "shared pool of this tier before it in the gateways' pools file."
)


def _lock_assignments() -> None:
    """Let concurrent calls of assign_pool wait until this transaction ends.

    They may assign the same pool.
    """
    # The lock is identified by a number: a hash of its name, with the seed 0.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [_LOCK])


def _require_free(tenant_id: TenantId, assignment: NewAssignment) -> None:
    """Check that other tenants' assignments of the pool allow this one. Raises Conflict.

    A dedicated pool can be assigned to one tenant only.
    """
    other_assignments = PoolAssignment.objects.filter(pool=assignment.pool).exclude(
        holder_id=UUID(tenant_id)
    )
    if not assignment.is_dedicated:
        other_assignments = other_assignments.filter(is_dedicated=True)
    slugs = sorted(set(other_assignments.values_list("holder__slug", flat=True)))
    if slugs and assignment.is_dedicated:
        raise Conflict("This pool also serves {tenants}.", tenants=", ".join(slugs))
    if slugs:
        raise Conflict("This pool is dedicated to {tenants}.", tenants=", ".join(slugs))


def _list_views(rows: QuerySet[PoolAssignment]) -> list[AssignmentView]:
    ordered_rows = rows.select_related("holder").order_by("holder__slug", "tier", "language")
    return [_to_view(row, row.holder.slug) for row in ordered_rows]


def _to_view(row: PoolAssignment, slug: str) -> AssignmentView:
    return AssignmentView(
        slug=slug,
        tier=Tier(row.tier),
        language=row.language,
        pool=row.pool,
        is_dedicated=row.is_dedicated,
        created_at=row.created_at,
    )


def _to_change_fields(row: PoolAssignment) -> ChangeFields:
    return {
        "tier": row.tier,
        "language": row.language,
        "pool": row.pool,
        "is_dedicated": row.is_dedicated,
    }
