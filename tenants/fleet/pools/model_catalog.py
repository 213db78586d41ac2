"""The catalogue of models that operators publish. Gateways follow within seconds.

A model has the name under which its engines serve it. The catalogue says in which tier the model is
offered, under which title, by which pools, and to tenants with which plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Max

from caret.contracts.policy import Tier
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.errors import InvalidValue, NotFound
from tenants.base.validation.text import validate_text
from tenants.fleet.pools.assignments import KnownPool, find_known_pool
from tenants.models import CatalogModel, Plan, Subscription, Tenant
from tenants.policy.availability.model_offers import has_catalog
from tenants.policy.snapshot_version import mark_all_snapshots_stale, mark_snapshot_stale

MAX_TITLE_CHARS: Final = 120
MAX_MODELS: Final = 100  # a tenant's snapshot contains all models of its plan
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NewModel:
    """The properties that operators choose for a model. Its pools determine its name and tier."""

    title: str  # as users see it
    pools: tuple[str, ...]  # names, preferred ones first; all have the same tier and model
    plans: tuple[str, ...] = ()  # slugs of the plans that include it; empty: all plans
    position: int | None = None  # in its tier's list; None: unchanged, or the last for a new model


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model of the catalogue. Fields without a comment are as in NewModel."""

    name: str  # under which its engines serve it
    tier: Tier
    title: str
    pools: tuple[str, ...]
    plans: tuple[str, ...]
    position: int  # in its tier's list, from 1
    is_published: bool  # False: no tenant can use it
    changed_at: datetime


def list_catalog() -> list[CatalogEntry]:
    """Return all models, also withdrawn ones, by tier and position. For operators only."""
    return [_to_entry(row) for row in CatalogModel.objects.order_by("tier", "position", "name")]


def publish_model(
    *, operator: str, model: NewModel, known_pools: Mapping[str, KnownPool], now: datetime
) -> CatalogEntry:
    """Publish a model, or change a published one.

    `operator` is the operator's handle, for the log. Raises InvalidValue, Conflict.
    """
    name, tier = _find_served_model(model, known_pools)
    title = model.title.strip()
    validate_text("title", title)
    if not 1 <= len(title) <= MAX_TITLE_CHARS:
        raise InvalidValue("title", "Enter 1 to {most} characters.", most=MAX_TITLE_CHARS)
    _check_plans(model.plans)
    with transaction.atomic():
        current = CatalogModel.objects.filter(tier=tier, name=name).order_by("id").first()
        if current is None and CatalogModel.objects.count() >= MAX_MODELS:
            raise InvalidValue(
                "pools", "The catalogue has {most} models, which is the limit.", most=MAX_MODELS
            )
        row = current or CatalogModel(tier=tier, name=name, created_at=now)
        row.title, row.pools, row.plans = title, list(model.pools), sorted(set(model.plans))
        row.position = _choose_position(model, current, tier)
        row.is_published, row.changed_at = True, now
        row.save()
        mark_all_snapshots_stale()
    logger.info("model.published", model=name, tier=tier.value, operator=operator)
    return _to_entry(row)


def withdraw_model(*, operator: str, name: str, tier: Tier, now: datetime) -> None:
    """Stop offering a model. Policies that name the model do not change. Raises NotFound."""
    with transaction.atomic():
        rows = CatalogModel.objects.filter(tier=tier, name=name, is_published=True)
        if rows.update(is_published=False, changed_at=now) != 1:
            raise NotFound("The catalogue has no such model.")
        mark_all_snapshots_stale()
    logger.info("model.withdrawn", model=name, tier=tier.value, operator=operator)


def refresh_started_plans(*, now: datetime) -> int:
    """Publish the snapshots of tenants whose plan starts today, and return their number.

    The plan determines which models are offered to a tenant. A second run on the same day is
    harmless.
    """
    if not has_catalog():
        return 0
    today, num = utc_day(now), 0
    for tenant_id in map(str, Tenant.objects.order_by("id").values_list("id", flat=True)):
        with tenant_scope(TenantId(tenant_id)):
            if Subscription.objects.filter(tenant_id=tenant_id, starts_on=today).exists():
                mark_snapshot_stale(tenant_id=TenantId(tenant_id))
                num += 1
    return num


def _find_served_model(model: NewModel, known_pools: Mapping[str, KnownPool]) -> tuple[str, Tier]:
    """Return the name and tier of the model that all of the pools serve.

    Raises InvalidValue, Conflict.
    """
    pools = [find_known_pool(known_pools, name) for name in dict.fromkeys(model.pools)]
    served_models = {(pool.model, pool.tier) for pool in pools}
    if len(served_models) != 1:
        raise InvalidValue("pools", "Choose one or more pools that serve the same model and tier.")
    return served_models.pop()


def _check_plans(plans: tuple[str, ...]) -> None:
    """Check that all plans exist. Raises InvalidValue."""
    known_slugs = set(Plan.objects.values_list("slug", flat=True))
    for slug in plans:
        if slug not in known_slugs:
            # Escape unprintable characters, and remove the quotes that `ascii` adds.
            raise InvalidValue("plans", "The plan {slug} does not exist.", slug=ascii(slug)[1:-1])


def _choose_position(model: NewModel, current: CatalogModel | None, tier: Tier) -> int:
    """Return the model's position. `current` is its row; None: a new model. Raises InvalidValue."""
    if model.position is not None:
        if not 1 <= model.position <= MAX_MODELS:
            raise InvalidValue("position", "Enter 1 to {most}.", most=MAX_MODELS)
        return model.position
    if current is not None:
        return current.position
    last = CatalogModel.objects.filter(tier=tier).aggregate(last=Max("position"))["last"]
    return min((last or 0) + 1, MAX_MODELS)


def _to_entry(row: CatalogModel) -> CatalogEntry:
    return CatalogEntry(
        name=row.name,
        tier=Tier(row.tier),
        title=row.title,
        pools=tuple(row.pools),
        plans=tuple(row.plans),
        position=row.position,
        is_published=row.is_published,
        changed_at=row.changed_at,
    )
