"""Assignment of pools to tenants by operators. Gateways follow within a second.

A tenant has at most one assigned pool of each tier, for all of its requests of that tier. Without
one, the pools file decides (`inference.pools.pool_config`).
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.validation.text import parse_reason
from tenants.fleet.pools.scraping.gateway_scraper import scrape_gateways
from tenants.fleet.pools.scraping.metric_samples import merge_samples
from tenants.identity.tenant_lifecycle import NewTenant, OnboardedTenant, onboard_tenant
from tenants.models import Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor


def onboard_in_pools(
    *,
    new: NewTenant,
    pools: Sequence[str],
    actor_for: Callable[[TenantId], Actor],
    now: datetime,
) -> OnboardedTenant:
    """Create a tenant as `onboard_tenant` does, and assign it pools. Either all, or nothing.

    Raises Forbidden, InvalidValue, Conflict.
    """

    def assign(actor: Actor) -> None:
        if pools:
            assign_pools(actor=actor, pools=pools, reason="", now=now)

    return onboard_tenant(new=new, actor_for=actor_for, complete=assign, now=now)


def assign_pools(*, actor: Actor, pools: Sequence[str], reason: str, now: datetime) -> None:
    """Assign pools to a tenant instead of those it has; none: the pools file decides again.

    Raises Forbidden, InvalidValue, NotFound, and Conflict if no gateway responds.
    """
    actor.require_operator()
    reason = parse_reason(reason)
    chosen = _check_pools(pools)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        Tenant.objects.filter(id=actor.tenant_id).update(pools=chosen)
        record_change(
            actor=actor,
            action="tenant.pools_assigned",
            target=f"tenant:{row.slug}",
            change=({"pools": ", ".join(row.pools)}, {"pools": ", ".join(chosen)}),
            reason=reason,
            now=now,
        )


def list_pools() -> dict[str, str]:
    """Return the tiers of all pools by name, as the gateways that respond report them."""
    readings = [each.samples for each in scrape_gateways() if each.samples is not None]
    pools = merge_samples(readings).all_values("caret_pool")
    return {labels["pool"]: labels["tier"] for labels, _ in sorted(pools, key=_pool_name)}


def _pool_name(reading: tuple[dict[str, str], float]) -> str:
    return reading[0]["pool"]


def _check_pools(pools: Sequence[str]) -> list[str]:
    """Return the names without duplicates. Raises InvalidValue, Conflict."""
    names = sorted({name.strip() for name in pools if name.strip()})
    if not names:
        return []
    known = list_pools()
    if not known:
        raise Conflict("No gateway responds, so the pools are unknown. Try again in a minute.")
    for name in names:
        if name not in known:
            raise InvalidValue(
                "pools",
                "There is no pool {pool}. The pools are {choices}.",
                pool=ascii(name)[1:-1],
                choices=", ".join(known),
            )
    tiers = [known[name] for name in names]
    if twice := next((tier for tier in tiers if tiers.count(tier) > 1), None):
        raise InvalidValue("pools", "Choose at most one pool of the tier {tier}.", tier=twice)
    return names
