"""Operations on plans, prices and subscriptions, for the platform's operator."""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

import msgspec
from django.db import IntegrityError, transaction

from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.money import Currency
from tenants.base.validation.text import validate_text
from tenants.base.validation.time_bounds import validate_date
from tenants.models import BillingState, Plan, PriceVersion, Subscription, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import list_tenants

MAX_PRICE_MICROS: Final = 10**12  # a million currency units, for a seat or for a million tokens
# The Billing page reads up to 6 rows (2 tiers x 3 kinds of tokens) for each model and day.
MAX_PRICED_MODELS: Final = 50
_MAX_NAME_CHARS: Final = 120  # of a plan
_SLUG: Final = re.compile(r"[a-z][a-z0-9-]{1,39}")
_MODEL: Final = re.compile(r"[\w./:@+-]{1,128}", re.ASCII)  # as in inference.routing.pool_selection
# The shortest time from today (UTC) to a change of price or plan: a part of today's usage may
# already be posted.
_MIN_NOTICE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class NewPrice:
    effective_on: date  # from 00:00 UTC
    seat_month_micros: int  # for one seat and one month
    tiers: dict[Tier, TierPrices]  # must have all tiers
    # Prices by model, by the name that the engines serve. Models without an entry have the price of
    # their tier.
    model_prices: dict[str, TierPrices] = field(default_factory=dict)


def create_plan(*, slug: str, name: str, currency: Currency, now: datetime) -> None:
    """Create a plan without a price. Raises InvalidValue, Conflict."""
    if _SLUG.fullmatch(slug) is None:
        raise InvalidValue(
            "slug", "Enter 2 to 40 lower-case letters, digits and hyphens, starting with a letter."
        )
    name = name.strip()
    validate_text("name", name)
    if not 1 <= len(name) <= _MAX_NAME_CHARS or not name.isprintable():
        raise InvalidValue(
            "name", "Enter 1 to {most} characters on one line.", most=_MAX_NAME_CHARS
        )
    try:
        with transaction.atomic():
            Plan.objects.create(slug=slug, name=name, currency=currency, created_at=now)
    except IntegrityError as error:
        raise Conflict("The plan {slug} already exists.", slug=slug) from error


def add_price(*, plan: str, new: NewPrice, now: datetime) -> None:
    """Add a price version to the plan with the slug `plan`, and publish it to the gateways.

    A plan's first price may begin on any day. Later prices begin tomorrow or later. Raises
    InvalidValue, NotFound, Conflict.
    """
    _check_price(new)
    with transaction.atomic():
        plan_row = _find_plan(plan)
        has_price = PriceVersion.objects.filter(plan_id=plan_row.id).exists()
        if has_price and new.effective_on < utc_day(now) + _MIN_NOTICE:
            raise InvalidValue("effective_on", "A new price can start tomorrow (UTC) or later.")
        try:
            with transaction.atomic():
                PriceVersion.objects.create(
                    plan_id=plan_row.id,
                    effective_on=new.effective_on,
                    seat_month_micros=new.seat_month_micros,
                    tiers=msgspec.to_builtins(new.tiers, order="deterministic"),
                    model_prices=msgspec.to_builtins(new.model_prices, order="deterministic"),
                    created_at=now,
                )
        except IntegrityError as error:
            raise Conflict("The plan already has a price from that day.") from error
    for tenant_id in list_tenants().values():
        _update_gateways(tenant_id, plan_row)


def _update_gateways(tenant_id: TenantId, plan: Plan) -> None:
    """Publish a new snapshot of the tenant if one of its subscriptions is to this plan."""
    with tenant_scope(tenant_id):
        if Subscription.objects.filter(tenant_id=tenant_id, plan_id=plan.id).exists():
            mark_snapshot_stale(tenant_id=tenant_id)


def subscribe_tenant(
    *, actor: Actor, plan: str, starts_on: date, now: datetime, reason: str = ""
) -> None:
    """Subscribe a tenant to the plan with the slug `plan`.

    The first subscription may begin in the month in which the tenant was created, or later. Usage
    since the first day of the subscription is rated. A change of plan begins tomorrow or later.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_operator()
    validate_date("starts_on", starts_on)
    plan_row = _find_plan(plan)
    with tenant_scope(actor.tenant_id):
        # Locks the tenant, so that only one of two concurrent subscriptions is the first.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        _check_start_day(actor.tenant_id, starts_on)
        _open_billing(actor, plan_row.currency, is_too_early=starts_on < utc_day(now) + _MIN_NOTICE)
        try:
            with transaction.atomic():
                Subscription.objects.create(
                    tenant_id=actor.tenant_id, plan=plan_row, starts_on=starts_on, created_at=now
                )
        except IntegrityError as error:
            raise Conflict("Another plan already starts on that day.") from error
        record_change(
            actor=actor,
            action="billing.subscribed",
            target=f"plan:{plan}",
            change=(None, {"plan": plan, "starts_on": starts_on.isoformat()}),
            reason=reason,
            now=now,
        )


def _check_start_day(tenant_id: TenantId, starts_on: date) -> None:
    """Check that the day is not before the tenant's first month.

    Seats are posted for every day since the first subscription. A mistyped year would add thousands
    of days. Raises InvalidValue.
    """
    first = start_of_month(utc_day(Tenant.objects.get(id=tenant_id).created_at))
    if starts_on < first:
        raise InvalidValue(
            "starts_on",
            "The tenant was created later. Choose {first} or later.",
            first=first.isoformat(),
        )


def _open_billing(actor: Actor, currency: str, *, is_too_early: bool) -> None:
    """Create the billing state for a first subscription. Otherwise, check the change of plan.

    `is_too_early`: the new subscription begins too early for a change of plan. Raises
    Conflict, InvalidValue.
    """
    billing_state = BillingState.objects.filter(tenant_id=actor.tenant_id).first()
    if billing_state is None:
        BillingState.objects.create(tenant_id=actor.tenant_id, currency=currency)
    elif billing_state.currency != currency:
        raise Conflict(
            "The tenant's ledger is in {held}, but the plan is in {currency}.",
            held=billing_state.currency,
            currency=currency,
        )
    elif is_too_early:
        raise InvalidValue("starts_on", "The other plan can start tomorrow (UTC) or later.")


def _find_plan(slug: str) -> Plan:
    validate_text("plan", slug)
    plan = Plan.objects.filter(slug=slug).order_by("slug").first()
    if plan is None:
        raise NotFound("The plan {slug} does not exist.", slug=slug)
    return plan


def _check_price(new: NewPrice) -> None:
    """Check the day, the prices and the names of models. Raises InvalidValue."""
    validate_date("effective_on", new.effective_on)
    if not 0 <= new.seat_month_micros <= MAX_PRICE_MICROS:
        raise InvalidValue("seat_month_micros", "Enter 0 to {most} micros.", most=MAX_PRICE_MICROS)
    if missing := sorted(set(Tier) - set(new.tiers)):
        raise InvalidValue("tiers", "The price for {tier} is missing.", tier=missing[0].value)
    for tier, prices in new.tiers.items():
        _check_token_prices(f"tiers.{tier.value}", prices)
    if len(new.model_prices) > MAX_PRICED_MODELS:
        raise InvalidValue(
            "model_prices", "Enter prices of up to {most} models.", most=MAX_PRICED_MODELS
        )
    for model, prices in new.model_prices.items():
        if _MODEL.fullmatch(model) is None:
            raise InvalidValue("model_prices", "Enter the names that the engines serve.")
        _check_token_prices(f"model_prices.{model}", prices)


def _check_token_prices(field_name: str, prices: TierPrices) -> None:
    """Check that no price is negative or too high. Raises InvalidValue."""
    for kind in prices.__struct_fields__:
        if not 0 <= getattr(prices, kind) <= MAX_PRICE_MICROS:
            raise InvalidValue(
                f"{field_name}.{kind}", "Enter 0 to {most} micros.", most=MAX_PRICE_MICROS
            )
