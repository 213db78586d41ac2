"""The models of the operators' catalogue that a tenant can choose from.

A tenant can choose from the models that its plan includes, except models whose pools are all
dedicated to other tenants.
"""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import QuerySet, Subquery

from caret.contracts.policy import PolicyOverride, TenantPolicy, Tier
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.models import CatalogModel, PolicyVersion, PoolAssignment, Subscription
from tenants.policy.document import parse_policy
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ModelOffer:
    name: str  # as requests and policies name it
    title: str  # the name that people see
    tier: Tier


def get_offers(*, actor: Actor, on: date) -> list[ModelOffer]:
    """Return the models that the tenant can choose on a day, sorted by tier and position.

    Raises Forbidden.
    """
    actor.require(Permission.READ_POLICY)
    return list_offers(tenant_id=actor.tenant_id, on=on)


def list_offers(*, tenant_id: TenantId, on: date) -> list[ModelOffer]:
    """Return the same offers as get_offers. Checks no permission.

    Up to three queries; one if no model is published.
    """
    if not (rows := _list_included(tenant_id, on)):
        return []
    reserved_pools = set(_list_dedicated_to_others(tenant_id).values_list("pool", flat=True))
    return [
        ModelOffer(row.name, row.title, Tier(row.tier))
        for row in rows
        if not reserved_pools.issuperset(row.pools)
    ]


def has_catalog() -> bool:
    """Return whether operators have published any model."""
    return CatalogModel.objects.filter(is_published=True).exists()


def read_model_pools(*, tenant_id: TenantId, on: date) -> dict[Tier, dict[str, tuple[str, ...]]]:
    """Return tier -> model -> pools for the tenant's snapshot.

    The result includes pools that are dedicated to other tenants, because such an assignment can
    change without a change of this tenant's snapshot. Gateways leave these pools out. A tier
    without a published model is missing. Three queries; one if no model is published.
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


def find_answering_models(*, tenant_id: TenantId, tier: Tier, on: date) -> frozenset[str] | None:
    """Return the models that may answer in a tier under the tenant's policy; None: unknown.

    The models are unknown if the tier has no published model, or if operators have assigned to the
    tenant a pool that the catalogue does not contain. Ignores policy overrides, and pools that the
    gateways' pools file dedicates to the tenant. One query.
    """
    subscriptions = Subscription.objects.filter(tenant_id=tenant_id, starts_on__lte=on)
    policies = PolicyVersion.objects.filter(tenant_id=tenant_id).order_by("-version")
    assignments = PoolAssignment.objects.filter(holder_id=UUID(tenant_id), tier=tier)
    with tenant_scope(tenant_id):
        rows = list(
            CatalogModel.objects.filter(is_published=True, tier=tier)
            .annotate(
                plan=Subquery(subscriptions.order_by("-starts_on").values("plan__slug")[:1]),
                policy=Subquery(policies.values("document")[:1]),
                assigned_pools=ArraySubquery(assignments.values("pool")),
                reserved_pools=ArraySubquery(_list_dedicated_to_others(tenant_id).values("pool")),
            )
            .values("name", "pools", "plans", "plan", "policy", "assigned_pools", "reserved_pools")
        )
    # Each row has the tenant's policy and all of the tenant's assigned pools.
    catalog_pools = {pool for row in rows for pool in row["pools"]}
    if not rows or not catalog_pools.issuperset(rows[0]["assigned_pools"]):
        return None
    # A model may answer if one of its pools is assigned to the tenant, whatever the plan. If none
    # is, the plan must include the model, and at least one pool must not be dedicated to others. A
    # model that lists no plans is included in every plan.
    models = frozenset(
        row["name"]
        for row in rows
        if not set(row["assigned_pools"]).isdisjoint(row["pools"])
        or (
            (not row["plans"] or row["plan"] in row["plans"])
            and not set(row["reserved_pools"]).issuperset(row["pools"])
        )
    )
    allowed = parse_policy(rows[0]["policy"]).models
    return models if allowed is None else models & allowed


def check_policy_models(
    *, tenant_id: TenantId, current: TenantPolicy, proposed: TenantPolicy, on: date
) -> None:
    """Check that a policy adds only models that are offered to the tenant. Raises InvalidValue.

    Models that the current policy names may stay. Without a published model, every name is allowed.
    """
    added = (proposed.models or frozenset()) - (current.models or frozenset())
    added_defaults = {
        (tier, name)
        for tier, name_by_language in proposed.default_models.items()
        for name in name_by_language.values()
        if name not in current.default_models.get(tier, {}).values()
    }
    if not (added or added_defaults) or not has_catalog():
        return
    offers = list_offers(tenant_id=tenant_id, on=on)
    _require_offered("models", added, {offer.name for offer in offers})
    for tier in Tier:
        names = {name for default_tier, name in added_defaults if default_tier is tier}
        offered_names = {offer.name for offer in offers if offer.tier is tier}
        _require_offered(f"default_models.{tier}", names, offered_names)


def check_override_models(
    *, tenant_id: TenantId, current: PolicyOverride, proposed: PolicyOverride, on: date
) -> None:
    """Check that an override adds only models that are offered to the tenant.

    Models that the current override names may stay. Without a published model, every name is
    allowed. Raises InvalidValue.
    """
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


def _list_dedicated_to_others(tenant_id: TenantId) -> QuerySet[PoolAssignment]:
    """Select the assignments of pools that are dedicated to other tenants."""
    dedicated = PoolAssignment.objects.filter(is_dedicated=True)
    return dedicated.exclude(holder_id=UUID(tenant_id))


def _list_included(tenant_id: TenantId, on: date) -> list[CatalogModel]:
    """Return the published models that the tenant's plan includes on a day. Up to two queries."""
    published = CatalogModel.objects.filter(is_published=True)
    rows = list(published.order_by("tier", "position", "name"))
    if not rows:
        return []
    with tenant_scope(tenant_id):
        subscriptions = Subscription.objects.filter(tenant_id=tenant_id, starts_on__lte=on)
        plan = subscriptions.order_by("-starts_on").values_list("plan__slug", flat=True).first()
    # A model that lists no plans is included in every plan.
    return [row for row in rows if not row.plans or plan in row.plans]
