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


def _pool(name: str, *, has_edits: bool = False, **fields: Any) -> Pool:
    pool = make_pool(tier=QUALITY)
    options = replace(pool.prompt_options, edit_format="zeta" if has_edits else None)
    return replace(pool, name=name, model=name, prompt_options=options, **fields)


# The model of `thinker` cannot propose edits; the model of `zeta` can.
THINKER, ZETA = _pool("thinker"), _pool("zeta", has_edits=True)
GLOBEX_ZETA = _pool("globex-zeta", has_edits=True, tenants=frozenset({"globex"}))


def _principal(*, policy: dict[str, Any] | None = None, **fields: Any) -> Principal:
    principal = make_principal(policy=make_policy(**(policy or {})))
    snapshot = msgspec.structs.replace(principal.snapshot, **fields)
    return replace(principal, snapshot=snapshot)


def _select(snapshot: TenantSnapshot, *pools: Pool, model: str = "") -> str:
    selector = PoolSelector(make_pools(make_pool(), *pools))
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
    ids=["only", "second", "another assigned", "assigned", "published", "allowed"],
)
def test_edits_use_the_pool_whose_model_proposes_them(
    fields: dict[str, Any], pools: tuple[Pool, ...]
) -> None:
    principal = _principal(**fields)

    assert _select(principal.snapshot, *pools) == "zeta"
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
def test_without_a_pool_for_edits_the_mode_is_unavailable(
    fields: dict[str, Any], pools: tuple[Pool, ...]
) -> None:
    principal = _principal(**fields)

    with pytest.raises(ForbiddenRequest) as refused:
        _select(principal.snapshot, *pools)

    assert refused.value.code == "mode_unavailable"
    assert not _may_edit(principal, *pools)


def test_a_named_model_must_propose_edits() -> None:
    models = {QUALITY: {"thinker": ("thinker",), "zeta": ("zeta",)}}
    snapshot = _principal(models=models).snapshot

    assert _select(snapshot, THINKER, ZETA, model="zeta") == "zeta"
    with pytest.raises(ForbiddenRequest) as refused:
        _select(snapshot, THINKER, ZETA, model="thinker")
    assert refused.value.code == "mode_unavailable"


def test_other_modes_do_not_use_a_pool_that_is_only_for_edits() -> None:
    selector = PoolSelector(make_pools(make_pool(), THINKER, ZETA))

    name = selector.select(_principal().snapshot, QUALITY, language="", model="")

    assert name == "thinker"


@pytest.mark.parametrize("features", [frozenset[Mode](), frozenset({Mode.CHAT})])
def test_edits_are_unavailable_if_the_policy_does_not_allow_them(features: frozenset[Mode]) -> None:
    assert not _may_edit(_principal(policy={"features": features}), ZETA)


def test_edits_are_unavailable_if_the_key_does_not_allow_them() -> None:
    principal = make_principal(modes=frozenset({Mode.INLINE}))

    assert not _may_edit(principal, ZETA)
