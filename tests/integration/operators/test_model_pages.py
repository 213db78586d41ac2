"""The pages of models, assigned pools and experiments, with a real gateway.

An experiment serves variants of prompts or filters to parts of the users.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from caret.contracts.experiments import (
    EXPERIMENTS,
    EXPERIMENTS_LOG,
    EXPERIMENTS_VERSION,
)
from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices
from tenants.base.operator_roles import OperatorRole
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.experiments import read_experiment_state
from tenants.fleet.pools.assignments import list_assignments
from tenants.fleet.pools.model_catalog import list_catalog, withdraw_model
from tests.fakes.billing import make_plan
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.operators.browsers import Browser, signed_in, with_recent_step_up
from tests.integration.operators.gateways import Gateway

# Forms that publish a model and create an experiment.
PUBLISHED = {"pools": "demo-quality", "title": "Demo Thinker", "position": "1"}
EXPERIMENT = {
    "name": "suffix-share",
    "variant_1": "wide",
    "suffix_share_1": "0.35",
    "reason": "Longer suffixes",
}


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture(autouse=True)
def _withdraw_models_and_delete_experiments() -> Iterator[None]:
    yield
    for entry in list_catalog():
        if entry.is_published:
            withdraw_model(operator="test", name=entry.name, tier=entry.tier, now=timezone.now())
    connection = connect_to_redis()
    connection.delete(EXPERIMENTS, EXPERIMENTS_LOG)
    connection.incr(EXPERIMENTS_VERSION)


def _post(path: str, **form: str) -> Any:
    return _post_as(with_recent_step_up(), path, form)


def _post_as(browser: Browser, path: str, form: dict[str, str]) -> Any:
    return browser.client.post(f"/operators/{path}", form)


def test_a_model_is_published_and_withdrawn(gateway: Gateway) -> None:
    done = _post("models/publish", **PUBLISHED)

    page = signed_in().client.get("/operators/models").content.decode()
    assert done["Location"] == "/operators/models?done=publish"
    assert "Demo Thinker" in page
    (entry,) = [item for item in list_catalog() if item.tier is Tier.QUALITY]
    assert (entry.name, entry.pools, entry.is_published) == ("demo", ("demo-quality",), True)
    _post("models/withdraw", name="demo", tier="quality")
    assert not any(entry.is_published for entry in list_catalog())


def test_the_page_names_the_plans_with_a_price_of_the_model(gateway: Gateway) -> None:
    plan = make_plan(model_prices={"demo": TierPrices(1, 1, 1)})
    make_plan(model_prices={"another": TierPrices(1, 1, 1)})

    _post("models/publish", **PUBLISHED)

    page = signed_in().client.get("/operators/models").content.decode()
    # The slug of each plan of make_plan begins with "team-".
    assert re.findall(r"<td>(team-[^<]*)</td>", page) == [plan]


@pytest.mark.parametrize(
    ("action", "form"),
    [
        ("publish", {"pools": "nowhere", "title": "x"}),
        ("publish", {"title": "x"}),
        ("publish", PUBLISHED | {"title": " "}),
        ("publish", PUBLISHED | {"position": "first"}),
        ("publish", PUBLISHED | {"plans": "no-such-plan"}),
        ("withdraw", {"name": "demo", "tier": "slow"}),
        ("withdraw", {"name": "no such model", "tier": "fast"}),
        ("assign", {"tenant": "nobody-here", "pool": "demo-fast", "reason": "x"}),
        ("unassign", {"tenant": "nobody-here", "tier": "fast", "reason": "x"}),
    ],
)
def test_an_invalid_change_of_models_is_refused(
    gateway: Gateway, action: str, form: dict[str, str]
) -> None:
    answer = _post(f"models/{action}", **form)

    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not any(entry.is_published for entry in list_catalog())


def test_a_pool_is_assigned_and_removed(gateway: Gateway, acme: Company) -> None:
    form = {"tenant": acme.slug, "pool": "demo-fast", "language": "Rust", "reason": "Trial"}

    _post("models/assign", **form)

    (assigned,) = list_assignments(tenant_id=acme.tenant_id)
    assert (assigned.language, assigned.pool) == ("rust", "demo-fast")
    assert acme.slug in signed_in().client.get("/operators/models").content.decode()
    refusal = _post("models/unassign", tenant=acme.slug, tier="fast", language="rust")
    assert refusal.status_code == 400  # no reason
    _post("models/unassign", tenant=acme.slug, tier="fast", language="rust", reason="Over")
    assert list_assignments(tenant_id=acme.tenant_id) == []


@pytest.mark.parametrize(
    ("path", "form"),
    [("models/publish", PUBLISHED), ("experiments/create", EXPERIMENT)],
)
def test_a_change_needs_a_code_and_the_right_role(
    gateway: Gateway, path: str, form: dict[str, str]
) -> None:
    without_code = _post_as(signed_in(), path, form)
    by_support = _post_as(with_recent_step_up(signed_in(OperatorRole.SUPPORT)), path, form)

    assert (without_code.status_code, by_support.status_code) == (400, 403)
    assert not any(entry.is_published for entry in list_catalog())
    assert read_experiment_state(connect_to_redis()).entries == {}


@pytest.mark.parametrize("path", ["models/sell", "experiments/sell"])
def test_an_unknown_change_is_not_found(path: str) -> None:
    assert _post(path).status_code == 404


def test_the_page_of_models_says_that_no_gateway_responds(settings: Settings) -> None:
    settings.GATEWAY_METRICS = ["http://127.0.0.1:1"]

    assert "No gateway responds" in signed_in().client.get("/operators/models").content.decode()


def test_gateways_follow_an_experiment_that_starts_and_stops(gateway: Gateway) -> None:
    capability = 'caret_gateway_capability{capability="experiments"}'
    gateway.wait_for_metric(f"{capability} 0.0")

    _post("experiments/create", **EXPERIMENT)

    gateway.wait_for_metric(f"{capability} 1.0")
    assert "suffix-share" in signed_in().client.get("/operators/experiments").content.decode()
    _post("experiments/stop", name="suffix-share", reason="Enough data")
    gateway.wait_for_metric(f"{capability} 0.0")
    _post("experiments/start", name="suffix-share", reason="Once more")
    gateway.wait_for_metric(f"{capability} 1.0")
    latest = read_experiment_state(connect_to_redis()).latest
    assert [experiment.is_running for experiment in latest] == [True, False, True]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Suffix Share"},
        {"variant_1": ""},
        {"variant_1": "control"},
        {"layout_1": "sideways"},
        {"weight_1": "0"},
        {"weight_1": "many"},
        {"suffix_share_1": "0.9"},
        {"suffix_share_1": "nan"},
        {"suffix_share_2": "0.1"},  # the second variant has no name
        {"tenants": "nobody-here"},
        {"reason": ""},
    ],
)
def test_an_invalid_experiment_is_refused_and_keeps_its_input(changes: dict[str, str]) -> None:
    form = EXPERIMENT | changes

    answer = _post("experiments/create", **form)

    assert answer.status_code == 400
    assert f'value="{form["suffix_share_1"]}"' in answer.content.decode()
    assert read_experiment_state(connect_to_redis()).entries == {}


def test_a_running_experiment_cannot_be_created_or_started_nor_an_unknown_one_stopped() -> None:
    _post("experiments/create", **EXPERIMENT)

    assert _post("experiments/create", **EXPERIMENT).status_code == 400
    assert _post("experiments/start", name="suffix-share", reason="x").status_code == 400
    assert _post("experiments/stop", name="other", reason="x").status_code == 400
