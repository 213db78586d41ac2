"""The models of the operators' catalogue that a tenant can choose from.

A tenant is offered what its plan includes. A model whose pools are all dedicated to other tenants
does not exist for it.
"""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from caret.contracts.policy import PolicyOverride, TenantPolicy, Tier
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.models import CatalogModel, PoolAssignment, Subscription
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ModelOffer:
    name: str  # as requests and policies name it
    title: str  # the name that people see
    tier: Tier


def get_offers(*, actor: Actor, on: date) -> list[ModelOffer]:
    """Return the tenant's offers of a day, by tier, the default first. Raises Forbidden."""
    actor.require(Permission.READ_POLICY)
    return list_offers(tenant_id=actor.tenant_id, on=on)


def list_offers(*, tenant_id: TenantId, on: date) -> list[ModelOffer]:
    """Return the tenant's offers of a day. Checks no permission.

    Three queries; one without a catalogue.
    """
    if not (rows := _list_included(tenant_id, on)):
        return []
    other_tenants_pools = PoolAssignment.objects.filter(is_dedicated=True).exclude(
        holder_id=UUID(tenant_id)
    )
    reserved_pools = set(other_tenants_pools.values_list("pool", flat=True))
    return [
        ModelOffer(row.name, row.title, Tier(row.tier))
        for row in rows
        if not reserved_pools.issuperset(row.pools)
    ]


def has_catalog() -> bool:
    """Return whether operators have published any model."""
    return CatalogModel.objects.filter(is_published=True).exists()


def read_model_pools(*, tenant_id: TenantId, on: date) -> dict[Tier, dict[str, tuple[str, ...]]]:
    """Return tier -> model -> pools for the tenant's snapshot. Two queries.

    Gateways leave out the pools that are dedicated to other tenants, because those may change
    without a change of this tenant's snapshot. A tier without any published model is missing.
    """
    pools_by_model: dict[Tier, dict[str, tuple[str, ...]]] = {
        Tier(tier): {}
        for tier in CatalogModel.objects.filter(is_published=True)
        .order_by("tier")
        .values_list("tier", flat=True)
        .distinct()
    }
    if not pools_by_model:
        return {}
    for row in _list_included(tenant_id, on):
        pools_by_model[Tier(row.tier)][row.name] = tuple(row.pools)
    return pools_by_model


def check_policy_models(
    *, tenant_id: TenantId, current: TenantPolicy, proposed: TenantPolicy, on: date
) -> None:
    """Check that a policy adds only models that are offered. Raises InvalidValue.

    Models that it named before may stay. Without a catalogue, every name is allowed.
    """
    added = (proposed.models or frozenset()) - (current.models or frozenset())
    defaults = {
        (tier, name)
        for tier, name_by_language in proposed.default_models.items()
        for name in name_by_language.values()
        if name not in current.default_models.get(tier, {}).values()
    }
    if not (added or defaults) or not has_catalog():
        return
    offers = list_offers(tenant_id=tenant_id, on=on)
    _require_offered("models", added, {offer.name for offer in offers})
    for tier in Tier:
        names = {name for default_tier, name in defaults if default_tier is tier}
        offered_names = {offer.name for offer in offers if offer.tier is tier}
        _require_offered(f"default_models.{tier}", names, offered_names)


def check_override_models(
    *, tenant_id: TenantId, current: PolicyOverride, proposed: PolicyOverride, on: date
) -> None:
    """Check that an override adds only models that are offered. Raises InvalidValue."""
    added = (proposed.models or frozenset()) - (current.models or frozenset())
    if added and has_catalog():
        offers = list_offers(tenant_id=tenant_id, on=on)
        _require_offered("models", added, {offer.name for offer in offers})


def _require_offered(field: str, names: set[str] | frozenset[str], offered_names: set[str]) -> None:
    if not names <= offered_names:
        raise InvalidValue(
            field,
            "Choose among these models: {names}.",
            names=", ".join(sorted(offered_names)) or "–",
        )


def _list_included(tenant_id: TenantId, on: date) -> list[CatalogModel]:
    """Return the published models that the tenant's plan includes."""
    published = CatalogModel.objects.filter(is_published=True)
    rows = list(published.order_by("tier", "position", "name"))
    if not rows:
        return []
    with tenant_scope(tenant_id):
        subscriptions = Subscription.objects.filter(tenant_id=tenant_id, starts_on__lte=on)
        plan = subscriptions.order_by("-starts_on").values_list("plan__slug", flat=True).first()
    return [row for row in rows if not row.plans or plan in row.plans]
