"""The selection of the pool by tier, language, requested model and dedication to tenants."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantSnapshot
from caret.foundation.ids import TenantId
from inference.errors import CompletionError
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pools.pool_config import Pool
from inference.routing.pool_selection import PoolSelector
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool, make_pools
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET, make_policy, make_snapshot


def _pool(name: str, model: str, tier: Tier = Tier.FAST, **fields: Any) -> Pool:
    return replace(make_pool(tier=tier), name=name, model=model, **fields)


POOLS = make_pools(
    _pool("all", "small"),
    _pool("gpu", "large"),
    _pool("rust", "rusty"),
    _pool("acme-only", "tuned"),
    _pool("all-quality", "thinker", Tier.QUALITY),
)
# The models that a tenant may request, and the pools of each model.
CATALOG = {Tier.FAST: {"small": ("all",), "large": ("gpu",), "tuned": ("acme-only",)}}


def _snapshot(*, tenant_id: TenantId = ACME, version: int = 1, **fields: Any) -> TenantSnapshot:
    policy = make_policy(**fields.pop("policy", {}))
    snapshot = make_snapshot(tenant_id=tenant_id, version=version, policy=policy)
    return msgspec.structs.replace(snapshot, **fields)


def _select(snapshot: TenantSnapshot, *, language: str = "python", model: str = "") -> str:
    return PoolSelector(POOLS).select(snapshot, Tier.FAST, language=language, model=model)


def test_the_first_shared_pool_serves_tenants_without_an_assignment() -> None:
    assert _select(_snapshot()) == "all"


def test_different_pools_can_be_assigned_for_one_language_and_for_all_others() -> None:
    snapshot = _snapshot(pools={Tier.FAST: {"*": "gpu", "rust": "rust"}})

    assert (_select(snapshot, language="rust"), _select(snapshot)) == ("rust", "gpu")
    assert _select(snapshot, language="") == "gpu"


def test_an_assignment_for_one_language_leaves_the_others_to_the_shared_pool() -> None:
    assert _select(_snapshot(pools={Tier.FAST: {"rust": "rust"}})) == "all"


@pytest.mark.parametrize("pool", ["unknown", "all-quality"])
def test_an_assigned_pool_that_this_gateway_cannot_use_is_ignored(pool: str) -> None:
    assert _select(_snapshot(pools={Tier.FAST: {"*": pool}})) == "all"


def test_without_a_catalog_the_requested_model_has_no_effect() -> None:
    assert _select(_snapshot(), model="codellama:7b") == "all"


def test_a_requested_model_is_served_by_its_pool() -> None:
    assert _select(_snapshot(models=CATALOG), model="large") == "gpu"


@pytest.mark.parametrize("model", ["", "caret", "default"])
def test_a_name_that_means_the_default_gets_the_first_model(model: str) -> None:
    assert _select(_snapshot(models=CATALOG), model=model) == "all"


def test_the_assigned_pool_is_preferred_to_the_first_model_of_the_catalog() -> None:
    assert _select(_snapshot(models=CATALOG, pools={Tier.FAST: {"*": "gpu"}})) == "gpu"


def test_the_policys_default_model_is_preferred_to_the_assigned_pool() -> None:
    defaults = {Tier.FAST: {"python": "tuned"}}
    snapshot = _snapshot(
        models=CATALOG, pools={Tier.FAST: {"*": "gpu"}}, policy={"default_models": defaults}
    )

    assert (_select(snapshot), _select(snapshot, language="rust")) == ("acme-only", "gpu")


def test_a_default_model_that_the_policy_forbids_is_replaced_by_an_allowed_model() -> None:
    policy = {"default_models": {Tier.FAST: {"*": "tuned"}}, "models": frozenset({"large"})}

    assert _select(_snapshot(models=CATALOG, policy=policy)) == "gpu"


def test_an_unknown_model_is_named_in_the_error() -> None:
    with pytest.raises(CompletionError) as rejected:
        _select(_snapshot(models=CATALOG), model="gpt-9")

    error = rejected.value
    assert (error.code, error.http_status, error.param) == ("model_not_found", 404, "model")
    assert "gpt-9" in error.message


def test_a_model_that_the_policy_forbids_is_named_in_the_error() -> None:
    with pytest.raises(CompletionError, match="model_not_allowed") as rejected:
        _select(_snapshot(models=CATALOG, policy={"models": frozenset({"small"})}), model="large")

    assert "large" in rejected.value.message


def test_a_model_of_another_tier_is_named_in_the_error() -> None:
    models = {**CATALOG, Tier.QUALITY: {"thinker": ("all-quality",)}}

    with pytest.raises(CompletionError, match="model_not_allowed") as rejected:
        _select(_snapshot(models=models), model="thinker")

    assert "thinker does not serve requests of the tier fast" in rejected.value.message


@pytest.mark.parametrize(
    "name",
    [
        "def f():\n    return 1",  # code
        "x" * 200,  # too long
        "clé",  # not ASCII
        None,  # an API key, generated by the test
    ],
)
def test_an_error_repeats_no_text_that_cannot_be_a_model_name(name: str | None) -> None:
    name = name or generate_key(KeyKind.DEVELOPER).text

    with pytest.raises(CompletionError) as rejected:
        _select(_snapshot(models=CATALOG), model=name)

    assert name not in rejected.value.message


def test_a_policy_that_allows_no_model_of_the_tier_rejects_requests() -> None:
    with pytest.raises(CompletionError, match="model_not_allowed"):
        _select(_snapshot(models=CATALOG, policy={"models": frozenset({"thinker"})}))


def test_a_catalog_without_a_model_of_the_tier_rejects_requests() -> None:
    with pytest.raises(CompletionError, match="no_pool"):
        _select(_snapshot(models={Tier.FAST: {}}))


def _dedicate_pool() -> tuple[PoolSelector, TenantSnapshot, TenantSnapshot, SnapshotStore]:
    """Return a selector, the snapshots of acme and globex, and their store.

    Both tenants are assigned the pool acme-only, which is dedicated to acme.
    """
    store = SnapshotStore(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=300)
    assigned = {Tier.FAST: {"*": "acme-only"}}
    acme = _snapshot(models=CATALOG, pools=assigned, dedicated_pools=frozenset({"acme-only"}))
    globex = _snapshot(tenant_id=GLOBEX, models=CATALOG, pools=assigned)
    for snapshot in (acme, globex):
        store.replace(snapshot)
    return PoolSelector(POOLS, store.may_use_pool), acme, globex, store


def test_another_tenants_dedicated_pool_is_not_used_although_it_is_assigned() -> None:
    selector, acme, globex, _ = _dedicate_pool()

    assert selector.select(acme, Tier.FAST, language="", model="") == "acme-only"
    assert selector.select(globex, Tier.FAST, language="", model="") == "all"


def test_the_model_of_another_tenants_dedicated_pool_gets_the_error_of_an_unknown_model() -> None:
    selector, acme, globex, _ = _dedicate_pool()
    messages = []
    for name in ("tuned", "gpt-9"):
        with pytest.raises(CompletionError, match="model_not_found") as rejected:
            selector.select(globex, Tier.FAST, language="", model=name)
        messages.append(rejected.value.message.replace(name, "NAME"))

    assert messages[0] == messages[1]
    assert selector.list_models(globex, Tier.FAST) == ["small", "large"]
    # The first model is the default, here the model of the pool that is assigned to acme.
    assert selector.list_models(acme, Tier.FAST) == ["tuned", "small", "large"]


def test_a_pool_that_is_no_longer_dedicated_serves_other_tenants_again() -> None:
    selector, acme, globex, store = _dedicate_pool()

    store.replace(msgspec.structs.replace(acme, version=2, dedicated_pools=frozenset()))

    assert selector.select(globex, Tier.FAST, language="", model="") == "acme-only"


def test_a_pool_that_the_pools_file_dedicates_to_a_tenant_serves_only_this_tenant() -> None:
    pools = make_pools(
        _pool("all", "small"),
        _pool("own", "tuned", tenants=frozenset({"acme"})),
        _pool("all-quality", "thinker", Tier.QUALITY),
    )
    selector = PoolSelector(pools)
    acme = _snapshot()  # needs no assignment: the file dedicates the pool to it
    globex = _snapshot(tenant_id=GLOBEX, pools={Tier.FAST: {"*": "own"}})  # assigned at runtime

    assert selector.select(acme, Tier.FAST, language="", model="") == "own"
    assert selector.select(globex, Tier.FAST, language="", model="") == "all"


def test_only_allowed_models_are_listed() -> None:
    snapshot = _snapshot(models=CATALOG, policy={"models": frozenset({"large"})})

    assert PoolSelector(POOLS).list_models(snapshot, Tier.FAST) == ["large"]
