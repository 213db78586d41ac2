"""Operators assign pools to tenants and publish models, and a real gateway follows."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import httpx
import pytest
from django.utils import timezone
from pytest_django import Settings

from caret.contracts.policy import Tier
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.money import Currency
from tenants.base.operator_roles import OperatorRole
from tenants.billing.plans.operations import create_plan, subscribe_tenant
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import build_operator_actor
from tenants.fleet.pools.assignments import (
    NewAssignment,
    PoolSharing,
    assign_pool,
    list_assignments,
    read_known_pools,
    unassign_pool,
)
from tenants.fleet.pools.model_catalog import NewModel, list_catalog, publish_model, withdraw_model
from tenants.models import AuditEntry, PoolAssignment
from tenants.policy.availability.model_offers import get_offers
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tenants.policy.snapshot_version import mark_snapshot_stale
from tests.benchmarks.installation import build_gateway_service, create_home, started
from tests.fakes.scripted_engine import ScriptedEngine, scripted_engine
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company, make_key
from tests.stack.ports import free_ports
from tests.stack.services import Services
from tests.stack.waiting import wait_until

MAX_DELAY_S: Final = 60.0  # usually less than a second
REASON: Final = "contract"
POOL_TOML: Final = """
[[pools]]
name = "{name}"
tier = "fast"
model = "{model}"
tokenizer = "{tokenizer}"
max_context_tokens = 4096
has_token_healing = false
replicas = ["{url}"]
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A gateway with the default pools, whose model is `demo`, and two more for the fast tier."""

    url: str
    metrics: str
    engines: dict[str, ScriptedEngine]  # by model

    def request(self, key: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        if body is None:
            return httpx.get(self.url + path, headers=headers, timeout=120)
        return httpx.post(self.url + path, json=body, headers=headers, timeout=120)

    def complete(self, key: str, **fields: Any) -> httpx.Response:
        body = {"prompt": f"a{time.monotonic_ns()} = ", "suffix": "\n", "max_tokens": 1} | fields
        return self.request(key, "/v1/completions", body)

    def find_model(self, key: str, **fields: Any) -> str:
        """Request a completion, and return the model whose engine generated it."""
        before = {name: engine.num_completions for name, engine in self.engines.items()}
        answer = self.complete(key, **fields)
        assert answer.status_code == 200, answer.text
        models = [n for n, engine in self.engines.items() if engine.num_completions > before[n]]
        assert len(models) == 1
        return models[0]


@pytest.fixture(scope="module")
def fleet_process(services: Services) -> Iterator[Fleet]:
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(scripted_engine()) for name in ("demo", "large", "tuned")
        }
        home = stack.enter_context(create_home())
        environment = {
            **home.environment,
            "REDIS_URL": services.redis_url,
            "CARET_ROOT_SECRET": services.paths.root_secret.read_text().strip(),
        }
        home = replace(home, environment=environment)
        port, metrics_port = free_ports(2)
        service = build_gateway_service(
            home, port=port, replicas=[engines["demo"].url], metrics_port=metrics_port
        )
        _add_pools(home.paths.pools, engines)
        stack.enter_context(started(service))
        yield Fleet(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics_port}", engines)


def _add_pools(file: Any, engines: dict[str, ScriptedEngine]) -> None:
    text = file.read_text()
    tokenizer = next(line for line in text.splitlines() if line.startswith("tokenizer"))
    added = [
        POOL_TOML.format(
            name=f"{model}-pool",
            model=model,
            tokenizer=json.loads(tokenizer.partition("=")[2]),
            url=engines[model].url,
        )
        for model in ("large", "tuned")
    ]
    file.write_text(text + "".join(added))


@pytest.fixture
def fleet(fleet_process: Fleet, settings: Settings) -> Iterator[Fleet]:
    settings.GATEWAY_METRICS = [fleet_process.metrics]
    yield fleet_process
    for entry in list_catalog():
        if entry.is_published:
            withdraw_model(operator="test", name=entry.name, tier=entry.tier, now=timezone.now())


@pytest.fixture
def acme() -> Iterator[Company]:
    tenant = make_company("acme", ACME_PEOPLE)
    yield tenant
    PoolAssignment.objects.filter(holder__slug=tenant.slug).delete()
    mark_snapshot_stale(tenant_id=tenant.tenant_id)


@pytest.fixture
def globex() -> Iterator[Company]:
    tenant = make_company("globex", GLOBEX_PEOPLE)
    yield tenant
    PoolAssignment.objects.filter(holder__slug=tenant.slug).delete()
    mark_snapshot_stale(tenant_id=tenant.tenant_id)


def _make_known_key(fleet: Fleet, company: Company) -> str:
    key = make_key(company, company.developer).text
    wait_until(lambda: fleet.request(key, "/v1/models").status_code == 200, timeout_s=60)
    return key


def _assign(company: Company, pool: str, **fields: Any) -> None:
    assign_pool(
        actor=company.platform,
        assignment=NewAssignment(pool, **fields),
        known_pools=read_known_pools(),
        reason=REASON,
        now=timezone.now(),
    )


def _publish(*pools: str, plans: tuple[str, ...] = ()) -> None:
    publish_model(
        operator="test",
        model=NewModel(title=pools[0].title(), pools=pools, plans=plans),
        known_pools=read_known_pools(),
        now=timezone.now(),
    )


def _await_models(fleet: Fleet, key: str, *models: str) -> None:
    """Wait until the gateway lists these models."""
    wait_until(lambda: _list_models(fleet, key) == list(models), timeout_s=60)


def _list_models(fleet: Fleet, key: str) -> list[str]:
    return [model["id"] for model in fleet.request(key, "/v1/models").json()["data"]]


def test_gateways_report_their_pools_and_how_they_are_shared(fleet: Fleet) -> None:
    known_pools = read_known_pools()

    assert known_pools["demo-fast"].sharing is PoolSharing.DEFAULT
    assert known_pools["large-pool"].sharing is PoolSharing.SHARED
    assert (known_pools["large-pool"].tier, known_pools["large-pool"].model) == (Tier.FAST, "large")


def test_a_changed_assignment_is_soon_in_force(fleet: Fleet, acme: Company) -> None:
    key = _make_known_key(fleet, acme)
    assert fleet.find_model(key) == "demo"

    _assign(acme, "large-pool")
    wait_until(lambda: fleet.find_model(key) == "large", timeout_s=MAX_DELAY_S)
    unassign_pool(
        actor=acme.platform, tier=Tier.FAST, language="*", reason=REASON, now=timezone.now()
    )
    wait_until(lambda: fleet.find_model(key) == "demo", timeout_s=MAX_DELAY_S)


def test_a_language_can_have_a_pool_of_its_own(fleet: Fleet, acme: Company) -> None:
    key = _make_known_key(fleet, acme)
    _assign(acme, "large-pool", language="rust")

    def serves_rust() -> bool:
        body = {"segments": {"prefix": f"a{time.monotonic_ns()}"}, "language": "rust"}
        before = fleet.engines["large"].num_completions
        assert fleet.request(key, "/v1/completions", body).status_code == 200
        return fleet.engines["large"].num_completions > before

    wait_until(serves_rust, timeout_s=60)
    assert fleet.find_model(key) == "demo"


def test_a_dedicated_pool_serves_no_other_tenant_and_is_not_shown_to_it(
    fleet: Fleet, acme: Company, globex: Company
) -> None:
    acme_key, globex_key = _make_known_key(fleet, acme), _make_known_key(fleet, globex)
    _publish("demo-fast")
    _publish("tuned-pool")
    _await_models(fleet, globex_key, "demo", "tuned")

    _assign(acme, "tuned-pool", is_dedicated=True)

    _await_models(fleet, globex_key, "demo")
    assert _list_models(fleet, acme_key)[0] == "tuned"
    assert fleet.find_model(acme_key) == "tuned"
    hidden, unknown_model = (fleet.complete(globex_key, model=name) for name in ("tuned", "gpt-9"))
    assert (hidden.status_code, unknown_model.status_code) == (404, 404)
    assert hidden.text.replace("tuned", "NAME") == unknown_model.text.replace("gpt-9", "NAME")
    today = timezone.now().date()
    assert [offer.name for offer in get_offers(actor=globex.administrator.actor, on=today)] == [
        "demo"
    ]
    with pytest.raises(InvalidValue) as exc_info:
        _set_models(globex, ["tuned"])
    assert exc_info.value.message == "Choose among these models: demo."


def test_a_pool_is_either_dedicated_or_shared(fleet: Fleet, acme: Company, globex: Company) -> None:
    _assign(acme, "tuned-pool", is_dedicated=True)
    with pytest.raises(Conflict, match="dedicated"):
        _assign(globex, "tuned-pool")
    _assign(acme, "tuned-pool")
    _assign(globex, "tuned-pool")
    with pytest.raises(Conflict, match="also serves"):
        _assign(acme, "tuned-pool", is_dedicated=True)
    with pytest.raises(Conflict, match="all tenants"):
        _assign(acme, "demo-fast", is_dedicated=True)


def test_an_unknown_pool_or_language_is_refused(fleet: Fleet, acme: Company) -> None:
    for fields in ({"pool": "nowhere"}, {"pool": "large-pool", "language": "klingon"}):
        with pytest.raises(InvalidValue):
            _assign(acme, **fields)
    assert list_assignments(tenant_id=acme.tenant_id) == []


def test_without_a_gateway_nothing_is_assigned(acme: Company, settings: Settings) -> None:
    settings.GATEWAY_METRICS = []
    with pytest.raises(Conflict, match="No gateway reports its pools"):
        _assign(acme, "large-pool")


def test_only_operators_who_may_write_assign_pools(fleet: Fleet, acme: Company) -> None:
    support = OperatorView(
        id=acme.developer.actor.user_id,  # type: ignore[arg-type]  # any ID
        handle="sue",
        name="Sue",
        role=OperatorRole.SUPPORT,
        created_at=timezone.now(),
        disabled_at=None,
        password_version="",
    )
    reader = build_operator_actor(support, tenant_id=acme.tenant_id, address="", request_id="")

    for actor in (acme.administrator.actor, acme.developer.actor, reader):
        with pytest.raises(Forbidden):
            assign_pool(
                actor=actor,
                assignment=NewAssignment("large-pool"),
                known_pools=read_known_pools(),
                reason=REASON,
                now=timezone.now(),
            )


def test_an_assignment_is_in_the_tenants_audit_log(fleet: Fleet, acme: Company) -> None:
    _assign(acme, "large-pool", language="rust")

    with tenant_scope(acme.tenant_id):
        entry = AuditEntry.objects.filter(action="tenant.pool_assigned").get()
    assert entry.after is not None
    assert (entry.after["pool"], entry.after["language"]) == ("large-pool", "rust")
    assert entry.reason == REASON


def test_a_request_gets_the_model_that_it_names(fleet: Fleet, acme: Company) -> None:
    key = _make_known_key(fleet, acme)
    assert fleet.find_model(key, model="any name") == "demo"
    _publish("demo-fast")
    _publish("large-pool")
    _await_models(fleet, key, "demo", "large")

    assert fleet.find_model(key, model="large") == "large"
    assert fleet.find_model(key, model="caret") == "demo"


def _set_models(company: Company, models: list[str] | None, **fields: Any) -> None:
    current_policy = find_policy_in_force(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(current_policy) | {"models": models} | fields,
        reason="test",
        now=timezone.now(),
    )


def test_a_policy_chooses_among_the_offered_models(fleet: Fleet, acme: Company) -> None:
    key = _make_known_key(fleet, acme)
    for pool in ("demo-fast", "large-pool"):
        _publish(pool)

    _set_models(acme, ["large"])

    wait_until(lambda: _list_models(fleet, key) == ["large"], timeout_s=60)
    assert fleet.find_model(key) == "large"
    refusal = fleet.complete(key, model="demo")
    assert refusal.status_code == 403
    assert refusal.json()["error"]["code"] == "model_not_allowed"
    assert "demo" in refusal.json()["error"]["message"]
    with pytest.raises(InvalidValue):
        _set_models(acme, ["large", "gpt-9"])
    with pytest.raises(InvalidValue):
        _set_models(acme, None, default_models={"quality": {"*": "large"}})


def test_a_policy_keeps_a_model_that_is_withdrawn(fleet: Fleet, acme: Company) -> None:
    _publish("demo-fast")
    _publish("large-pool")
    _set_models(acme, ["large"])
    withdraw_model(operator="test", name="large", tier=Tier.FAST, now=timezone.now())

    _set_models(acme, ["large", "demo"])

    policy = find_policy_in_force(tenant_id=acme.tenant_id).policy
    assert policy.models == frozenset({"large", "demo"})


def test_a_model_of_another_plan_is_not_offered(fleet: Fleet, acme: Company) -> None:
    slug = f"big-{time.monotonic_ns()}"
    create_plan(slug=slug, name="Big", currency=Currency.EUR, now=timezone.now())
    key = _make_known_key(fleet, acme)
    _publish("demo-fast")
    _publish("large-pool", plans=(slug,))
    _await_models(fleet, key, "demo")
    assert fleet.complete(key, model="large").status_code == 404

    today = timezone.now().date()
    subscribe_tenant(actor=acme.platform, plan=slug, starts_on=today, now=timezone.now())

    _await_models(fleet, key, "demo", "large")
    offers = get_offers(actor=acme.administrator.actor, on=today - timedelta(days=1))
    assert [offer.name for offer in offers] == ["demo"]


_MESSAGE: Final = "The model gpt-9 does not exist."
_OLLAMA_MESSAGE: Final = "model 'gpt-9' not found"  # Ollama's clients look for this text
# The body, the place of the message in the response, and the message.
UNKNOWN_MODEL_ERRORS: Final[dict[str, tuple[dict[str, Any], str, str]]] = {
    "/v1/completions": ({"prompt": "a", "suffix": "b"}, "error.message", _MESSAGE),
    "/v1/fim/completions": ({"prompt": "a", "suffix": "b"}, "message", _MESSAGE),
    "/infill": ({"input_prefix": "a", "input_suffix": "b"}, "error.message", _MESSAGE),
    "/api/generate": ({"prompt": "a", "suffix": "b"}, "error", _OLLAMA_MESSAGE),
    "/api/show": ({}, "error", _OLLAMA_MESSAGE),
}


@pytest.mark.parametrize("path", UNKNOWN_MODEL_ERRORS)
def test_each_protocol_names_an_unknown_model_in_its_error(
    fleet: Fleet, acme: Company, path: str
) -> None:
    key = _make_known_key(fleet, acme)
    _publish("demo-fast")
    wait_until(lambda: fleet.complete(key, model="gpt-9").status_code == 404, timeout_s=60)
    body, place, expected = UNKNOWN_MODEL_ERRORS[path]
    answer = fleet.request(key, path, body | {"model": "gpt-9"})

    message = answer.json()
    for name in place.split("."):
        message = message[name]
    assert answer.status_code == 404
    assert expected in message
