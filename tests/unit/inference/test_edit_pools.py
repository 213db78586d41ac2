"""The selection of the pool that serves edits, and of the tenants that may request edits."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from caret.contracts.policy import Mode, Tier
from caret.contracts.snapshot import TenantSnapshot
from inference.completion.request import Principal
from inference.errors import ForbiddenRequest
from inference.pools.pool_config import Pool
from inference.routing.pool_selection import PoolSelector
from tests.fakes.pools import make_pool, make_pools
from tests.fakes.tenants import make_policy, make_principal

QUALITY = Tier.QUALITY


def _make_pool(name: str, *, has_edits: bool = False, **fields: Any) -> Pool:
    """Return a pool of the tier `quality` whose model has the pool's name."""
    pool = make_pool(tier=QUALITY)
    options = replace(pool.prompt_options, edit_format="zeta" if has_edits else None)
    return replace(pool, name=name, model=name, prompt_options=options, **fields)


# The model of `thinker` cannot propose edits; the model of `zeta` can.
THINKER, ZETA = _make_pool("thinker"), _make_pool("zeta", has_edits=True)
# Only the tenant Globex may use this pool.
GLOBEX_ZETA = _make_pool("globex-zeta", has_edits=True, tenants=frozenset({"globex"}))


def _make_principal(*, policy: dict[str, Any] | None = None, **fields: Any) -> Principal:
    """Return a principal of Acme. `fields` are those of its tenant's snapshot.

    The field `pools` names the pool that is assigned to the tenant, by tier and language. The field
    `models` names the pools of each published model, by tier and model.
    """
    principal = make_principal(policy=make_policy(**(policy or {})))
    snapshot = msgspec.structs.replace(principal.snapshot, **fields)
    return replace(principal, snapshot=snapshot)


def _select_for_edit(snapshot: TenantSnapshot, *pools: Pool, model: str = "") -> str:
    """Return the name of the pool that serves an edit for this tenant."""
    selector = PoolSelector(make_pools(make_pool(), *pools))  # the first pool: of the tier `fast`
    return selector.select(snapshot, QUALITY, language="python", model=model, is_edit=True)


def _may_edit(principal: Principal, *pools: Pool) -> bool:
    selector = PoolSelector(make_pools(make_pool(), *pools))
    return Mode.EDIT in selector.find_modes(principal)


@pytest.mark.parametrize(
    ("fields", "pools"),
    [
        ({}, (ZETA,)),
        ({}, (THINKER, ZETA)),
        ({"pools": {QUALITY: {"*": "thinker"}}}, (THINKER, ZETA)),
        ({"pools": {QUALITY: {"*": "zeta"}}}, (THINKER, ZETA)),
        ({"models": {QUALITY: {"thinker": ("thinker",), "zeta": ("zeta",)}}}, (THINKER, ZETA)),
        ({"policy": {"models": frozenset({"zeta"})}}, (THINKER, ZETA)),
    ],
    ids=[
        "the only pool",
        "the second pool",
        "another pool is assigned to the tenant",
        "assigned to the tenant",
        "its model is published",
        "the policy allows only its model",
    ],
)
def test_edits_use_the_pool_whose_model_proposes_them(
    fields: dict[str, Any], pools: tuple[Pool, ...]
) -> None:
    principal = _make_principal(**fields)

    assert _select_for_edit(principal.snapshot, *pools) == "zeta"
    assert _may_edit(principal, *pools)


@pytest.mark.parametrize(
    ("fields", "pools"),
    [
        ({}, (THINKER,)),
        ({}, (THINKER, GLOBEX_ZETA)),
        ({"models": {QUALITY: {"thinker": ("thinker",)}}}, (THINKER, ZETA)),
        ({"policy": {"models": frozenset({"thinker"})}}, (THINKER, ZETA)),
    ],
    ids=["none", "of another tenant", "not published", "not allowed"],
)
def test_edits_are_unavailable_without_a_pool_that_the_tenant_may_use_for_them(
    fields: dict[str, Any], pools: tuple[Pool, ...]
) -> None:
    principal = _make_principal(**fields)

    with pytest.raises(ForbiddenRequest) as rejected:
        _select_for_edit(principal.snapshot, *pools)

    assert rejected.value.code == "mode_unavailable"
    assert not _may_edit(principal, *pools)


def test_a_request_for_an_edit_may_only_name_a_model_that_proposes_edits() -> None:
    models = {QUALITY: {"thinker": ("thinker",), "zeta": ("zeta",)}}
    snapshot = _make_principal(models=models).snapshot

    assert _select_for_edit(snapshot, THINKER, ZETA, model="zeta") == "zeta"
    with pytest.raises(ForbiddenRequest) as rejected:
        _select_for_edit(snapshot, THINKER, ZETA, model="thinker")

    assert rejected.value.code == "mode_unavailable"


@pytest.mark.parametrize(
    ("pools", "expected"), [((THINKER, ZETA), "thinker"), ((ZETA, THINKER), "zeta")]
)
def test_other_modes_use_the_first_pool_even_if_only_another_can_propose_edits(
    pools: tuple[Pool, ...], expected: str
) -> None:
    selector = PoolSelector(make_pools(make_pool(), *pools))
    snapshot = _make_principal().snapshot

    name = selector.select(snapshot, QUALITY, language="", model="")

    assert name == expected
    assert _select_for_edit(snapshot, *pools) == "zeta"


@pytest.mark.parametrize("features", [frozenset[Mode](), frozenset({Mode.CHAT})])
def test_edits_are_unavailable_if_the_policy_does_not_allow_them(features: frozenset[Mode]) -> None:
    assert not _may_edit(_make_principal(policy={"features": features}), ZETA)


def test_edits_are_unavailable_if_the_key_does_not_allow_them() -> None:
    principal = make_principal(modes=frozenset({Mode.INLINE}))

    assert not _may_edit(principal, ZETA)
