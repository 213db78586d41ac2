"""The control plane and gateways agree on when a hard budget is used up, for each model.

A gateway reserves the highest cost that a completion of the model can have. A hard budget is used
up if this reservation is too large even for the cheapest model that may answer.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from caret.contracts.policy import Tier
from caret.contracts.pricing import MAX_GENERATED_TOKENS, MAX_PROMPT_TOKENS, BudgetScope, TierPrices
from caret.foundation.clock import to_unix_ms
from inference.completion.request import Principal
from inference.gateway.rate_limits.budget_reservation import plan_reservation
from tenants.billing.budgets.operations import BudgetTarget
from tenants.billing.budgets.queries import find_budget
from tenants.fleet.pools.assignments import KnownPool, PoolSharing
from tenants.fleet.pools.model_catalog import NewModel, list_catalog, publish_model, withdraw_model
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.models import PoolAssignment
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import load_active_policy
from tests.fakes.billing import NOW, make_budget, make_customer, make_plan
from tests.fakes.requests import make_request
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company, make_key

# Models: more expensive than the fast tier, less expensive, and without a price of their own.
LARGE, SMALL, UNPRICED = "large", "small", "unpriced"
PRICES = {
    LARGE: TierPrices(prompt=3_000_000, cached_prompt=300_000, generated=12_000_000),
    SMALL: TierPrices(prompt=10_000, cached_prompt=1_000, generated=30_000),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """The settings that select the models that may answer."""

    published: tuple[str, ...] = ()
    # The published model that the tenant's plan does not include; "": none.
    of_another_plan: str = ""
    allowed: tuple[str, ...] | None = None  # by the policy; None: all
    assigned_pool: str = ""  # the pool that is assigned to the tenant; "": none
    dedicated_to_neighbour: str = ""  # the pool that is dedicated to another tenant; "": none


# The settings, and the model whose reservation at a gateway must equal the control plane's.
SCENARIOS = {
    "the only model of the catalogue": (Scenario((LARGE,)), LARGE),
    "the cheapest of several models": (Scenario((LARGE, SMALL)), SMALL),
    "a model with the tier's price": (Scenario((LARGE, UNPRICED)), UNPRICED),
    "a model that the policy allows": (Scenario((LARGE, SMALL), allowed=(LARGE,)), LARGE),
    "a model of the plan": (Scenario((LARGE, SMALL), of_another_plan=SMALL), LARGE),
    "a model of a pool that is not dedicated to another tenant": (
        Scenario((LARGE, SMALL), dedicated_to_neighbour="small-pool"),
        LARGE,
    ),
    "the model of the assigned pool": (
        Scenario((LARGE, SMALL), of_another_plan=SMALL, assigned_pool="small-pool"),
        SMALL,
    ),
    # In the last two scenarios, the model is unknown: it may be the one with the lowest price.
    "an unknown model of an assigned pool": (Scenario((LARGE,), assigned_pool="other"), SMALL),
    "any model without a catalogue": (Scenario(), SMALL),
}


@pytest.fixture
def company() -> Company:
    company = make_company("priced", ACME_PEOPLE)
    make_customer(company, plan=make_plan(model_prices=PRICES))
    make_key(company, company.developer)
    return company


@pytest.fixture(autouse=True)
def _withdraw_models() -> Iterator[None]:
    yield
    for entry in list_catalog():
        if entry.is_published:
            withdraw_model(operator="test", name=entry.name, tier=entry.tier, now=NOW)


def publish(model: str, *, plans: tuple[str, ...]) -> None:
    """Publish a model of the shared pool `<model>-pool`. Without `plans`, all plans include it."""
    pool = KnownPool(f"{model}-pool", Tier.FAST, model, PoolSharing.SHARED)
    new_model = NewModel(model.title(), (pool.name,), plans=plans)
    publish_model(operator="test", model=new_model, known_pools={pool.name: pool}, now=NOW)


def apply_scenario(company: Company, scenario: Scenario) -> None:
    for model in scenario.published:
        publish(model, plans=(make_plan(),) if model == scenario.of_another_plan else ())
    if scenario.allowed is not None:
        document = serialize_policy(load_active_policy(tenant_id=company.tenant_id))
        set_policy(
            actor=company.platform,
            document=document | {"models": list(scenario.allowed)},
            reason="Only these",
            now=NOW,
        )
    if scenario.assigned_pool:
        assign_pool(company, scenario.assigned_pool)
    if scenario.dedicated_to_neighbour:
        assign_pool(
            make_company(f"n-{secrets.token_hex(3)}", GLOBEX_PEOPLE),
            scenario.dedicated_to_neighbour,
        )


def assign_pool(company: Company, pool: str) -> None:
    PoolAssignment.objects.create(
        holder_id=company.tenant_id, tier=Tier.FAST, pool=pool, is_dedicated=True, created_at=NOW
    )


@pytest.fixture(autouse=True)
def _unassign_pools() -> Iterator[None]:
    yield
    PoolAssignment.objects.all().delete()


def reserve_at_gateway(company: Company, model: str) -> int:
    """Return the amount that a gateway reserves for a completion of the model."""
    snapshot = read_snapshot(tenant_id=company.tenant_id, now=NOW)
    reservation = plan_reservation(
        Principal(credential=snapshot.credentials[0], snapshot=snapshot),
        make_request(max_tokens=MAX_GENERATED_TOKENS),
        now_ms=to_unix_ms(NOW),
        max_prompt_tokens=MAX_PROMPT_TOKENS[Tier.FAST],
        model=model,
    )
    return reservation.spend_requests[0].units


@pytest.mark.parametrize(("scenario", "model"), SCENARIOS.values(), ids=SCENARIOS)
def test_a_hard_budget_is_used_up_if_gateways_cannot_reserve(
    company: Company, scenario: Scenario, model: str
) -> None:
    apply_scenario(company, scenario)
    # Without a hard budget, the gateway would reserve nothing.
    make_budget(company, limit_micros=1_000_000)
    reserved_micros = reserve_at_gateway(company, model)

    developer, administrator = (
        BudgetTarget(BudgetScope.USER, UUID(person.user_id))
        for person in (company.developer, company.administrator)
    )
    sufficient = make_budget(company, limit_micros=reserved_micros, holder=developer)
    insufficient = make_budget(company, limit_micros=reserved_micros - 1, holder=administrator)

    actor = company.administrator.actor
    assert [
        find_budget(actor=actor, budget_id=budget.id, now=NOW).is_exhausted
        for budget in (sufficient, insufficient)
    ] == [False, True]
