"""route: the choice of the replica for a prompt."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from inference.errors import CompletionDropped
from inference.pools.engine import EngineRequest
from inference.pools.health.outlier_detection import EJECTION_S, MAX_CONSECUTIVE_LATE
from inference.pools.health.replica_states import COOLDOWN_S, HealthStatus
from inference.pools.pool_config import Replica
from inference.prefix_cache.kv_events import BlockStored
from inference.routing.consistent_hashing import MIN_CAPACITY
from inference.routing.route import LATE_TARGETS, Router, route
from tests.fakes.clock import FakeClock
from tests.fakes.pools import TARGETS_MS, make_pool, make_router
from tests.fakes.requests import make_admitted, make_prompt
from tests.fakes.tenants import GLOBEX, make_principal

POOL = make_pool("http://one:1", "http://two:1", "http://three:1")
# A pool whose replicas publish the blocks that they have cached.
PUBLISHING = replace(
    POOL,
    replicas=tuple(
        replace(replica, kv_events="tcp://engine:5557") for replica in POOL.replicas[:2]
    ),
)
PATHS = [f"src/module_{n}.py" for n in range(300)]
ACME_ADA = make_principal()
GLOBEX_GUS = make_principal(tenant_id=GLOBEX)


def _router(clock: FakeClock | None = None) -> Router:
    return make_router(POOL, clock=clock)


def _route(router: Router, *, is_single_line: bool = False, **fields: Any) -> EngineRequest:
    admitted = make_admitted(ACME_ADA, **fields)
    return route(router, admitted, make_prompt(is_single_line=is_single_line))


def _fail(router: Router, replica: Replica) -> None:
    router.replicas.on_health_check(replica, HealthStatus.UNHEALTHY)


def _replica_by_path(router: Router) -> dict[str, str]:
    return {path: _route(router, path=path).replica.name for path in PATHS}


def test_a_file_is_always_routed_to_the_same_replica() -> None:
    assert _replica_by_path(_router()) == _replica_by_path(_router())


def test_files_are_spread_over_the_replicas() -> None:
    counts = Counter(_replica_by_path(_router()).values())

    assert set(counts) == {"one:1", "two:1", "three:1"}
    assert min(counts.values()) > 60  # 100 on average


def test_only_the_files_of_a_lost_replica_move() -> None:
    router = _router()
    before = _replica_by_path(router)

    _fail(router, POOL.replicas[0])
    after = _replica_by_path(router)

    assert "one:1" not in after.values()
    other_paths = [path for path, replica in before.items() if replica != "one:1"]
    assert {path: after[path] for path in other_paths} == {
        path: before[path] for path in other_paths
    }


def test_files_return_to_a_recovered_replica() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _replica_by_path(router)

    _fail(router, POOL.replicas[0])
    clock.pass_s(COOLDOWN_S)

    assert _replica_by_path(router) == before


def test_a_pool_without_available_replicas_is_routed_as_before() -> None:
    router = _router()
    before = _replica_by_path(router)

    for replica in POOL.replicas:
        _fail(router, replica)

    assert _replica_by_path(router) == before


def test_an_ejected_replica_gets_no_requests_until_its_ejection_ends() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _replica_by_path(router)

    with _late_requests(router, POOL.replicas[0], clock=clock):
        during_ejection = _replica_by_path(router)
    clock.pass_s(EJECTION_S)

    assert "one:1" not in during_ejection.values()
    assert _replica_by_path(router) == before


def test_a_pool_with_only_ejected_replicas_is_routed_as_before() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _replica_by_path(router)

    with _late_requests(router, *POOL.replicas, clock=clock):
        assert _replica_by_path(router) == before


async def test_waiting_warm_ups_eject_no_replica() -> None:  # a warm-up needs a running task
    clock = FakeClock()
    router = _router(clock)
    before = _replica_by_path(router)

    with _late_requests(router, POOL.replicas[0], clock=clock, is_preemptible=True):
        assert _replica_by_path(router) == before


@contextmanager
def _late_requests(
    router: Router, *replicas: Replica, clock: FakeClock, is_preemptible: bool = False
) -> Iterator[None]:
    """Let requests wait at these replicas beyond their first-token timeout."""
    with ExitStack() as stack:
        for replica in replicas * MAX_CONSECUTIVE_LATE:  # so many late requests at each
            attempt = router.replicas.attempt(
                replica, is_preemptible=is_preemptible, first_token_timeout_s=1.0
            )
            stack.enter_context(attempt)
        clock.pass_s(2.0)
        yield


def test_under_light_load_a_file_stays_at_the_replica_with_its_prefix() -> None:
    router = _router()
    first = _route(router, path="busy.py").replica

    with ExitStack() as stack:
        for _ in range(MIN_CAPACITY - 1):
            stack.enter_context(router.replicas.attempt(first))
        second = _route(router, path="busy.py").replica

    assert second is first


def test_the_requests_of_a_full_replica_go_to_its_fallback() -> None:
    router = _router()
    request = _route(router, path="busy.py")
    (fallback,) = request.fallback_replicas

    with ExitStack() as stack:
        for _ in range(MIN_CAPACITY):
            stack.enter_context(router.replicas.attempt(request.replica))
        replicas = [_route(router, path="busy.py").replica for _ in range(3)]

    assert replicas == [fallback] * 3


def test_the_request_contains_the_number_in_flight_at_the_replica() -> None:
    router = _router()
    replica = _route(router).replica

    with router.replicas.attempt(replica), router.replicas.attempt(replica):
        assert _route(router).num_in_flight_at_replica == 2


def test_a_request_without_a_path_is_routed_by_its_first_tokens() -> None:
    router = _router()
    prompts = [
        replace(make_prompt(), token_ids=[first_token] * 64 + [last_token])
        for first_token in range(20)
        for last_token in range(3)
    ]
    admitted = make_admitted(ACME_ADA, path="")

    names = [route(router, admitted, prompt).replica.name for prompt in prompts]

    # Three prompts at a time have the same first tokens.
    assert all(len(set(names[n : n + 3])) == 1 for n in range(0, 60, 3))
    assert len(set(names)) == len(POOL.replicas)


def test_the_replica_with_clearly_more_cached_tokens_is_chosen() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)
    (other_replica,) = before.fallback_replicas

    # The difference is more than MIN_GAIN_TOKENS.
    _cache(router, before.replica, num_tokens=100, salt=before.salt)
    _cache(router, other_replica, num_tokens=300, salt=before.salt)
    after = route(router, admitted, prompt)

    assert (after.replica, after.fallback_replicas[0]) == (other_replica, before.replica)


def test_slightly_more_cached_tokens_change_nothing() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)

    # The difference is less than MIN_GAIN_TOKENS.
    _cache(router, before.replica, num_tokens=200, salt=before.salt)
    _cache(router, before.fallback_replicas[0], num_tokens=300, salt=before.salt)

    assert route(router, admitted, prompt).replica is before.replica


def test_a_full_replica_is_not_chosen_for_its_cached_tokens() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)
    _cache(router, before.replica, num_tokens=100, salt=before.salt)
    _cache(router, before.fallback_replicas[0], num_tokens=400, salt=before.salt)

    with ExitStack() as stack:
        for _ in range(MIN_CAPACITY):
            stack.enter_context(router.replicas.attempt(before.fallback_replicas[0]))
        during = route(router, admitted, prompt)

    assert during.replica is before.replica


def test_cached_blocks_of_another_tenant_do_not_count() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    before = route(router, make_admitted(ACME_ADA), prompt)
    their_prompt = route(router, make_admitted(GLOBEX_GUS), prompt)

    _cache(router, before.replica, num_tokens=100, salt=their_prompt.salt)
    _cache(router, before.fallback_replicas[0], num_tokens=400, salt=their_prompt.salt)

    assert route(router, make_admitted(ACME_ADA), prompt).replica is before.replica


def _cache(router: Router, replica: Replica, *, num_tokens: int, salt: str) -> None:
    """Report that the replica has cached the first tokens of the prompt `range(400)`."""
    block_tokens = 4
    num_blocks = num_tokens // block_tokens
    router.index.add_replica(replica.url).apply(
        BlockStored(
            block_hashes=list(range(num_blocks)),
            parent_block_hash=None,
            token_ids=list(range(num_tokens)),
            block_size=block_tokens,
            extra_keys=[[salt], *[None] * (num_blocks - 1)],  # only the first block has the salt
        )
    )


def test_the_fallback_is_an_available_replica() -> None:
    router = _router()
    request = _route(router, path="a.py")

    _fail(router, request.fallback_replicas[0])

    (fallback,) = _route(router, path="a.py").fallback_replicas
    assert fallback not in (request.replica, *request.fallback_replicas)


def test_a_pool_with_one_replica_has_no_fallback() -> None:
    assert _route(make_router()).fallback_replicas == ()


def test_tenants_have_different_cache_salts() -> None:
    our_prompt = route(_router(), make_admitted(ACME_ADA), make_prompt())
    their_prompt = route(_router(), make_admitted(GLOBEX_GUS), make_prompt())

    assert our_prompt.salt != their_prompt.salt


def test_the_engine_stops_single_lines_at_the_line_break() -> None:
    request = _route(_router(), is_single_line=True, stop=("x",))

    assert request.stop == ("x", "\n")


def test_the_engine_does_not_stop_other_completions_at_the_line_break() -> None:
    assert _route(_router(), stop=("x",)).stop == ("x",)


def test_inline_completions_have_priority_over_other_modes() -> None:
    priorities = {mode: _route(_router(), mode=mode).priority for mode in Mode}

    # A lower number is served first.
    assert priorities == {
        Mode.INLINE: 0,
        Mode.FIM: 1,
        Mode.BLOCK: 2,
        Mode.DOCSTRING: 2,
        Mode.CHAT: 3,
        Mode.EDIT: 3,
    }


def test_half_a_surrogate_pair_is_accepted() -> None:
    assert _route(_router(), path="\ud800.py", repository="\ud800").replica in POOL.replicas


def test_a_drained_replica_gets_no_requests_and_other_files_stay() -> None:
    router = _router()
    before = _replica_by_path(router)

    router.replicas.set_drained(["one:1"])
    after = _replica_by_path(router)

    assert "one:1" not in after.values()
    assert all(after[path] == replica for path, replica in before.items() if replica != "one:1")
    assert all(
        replica.name != "one:1"
        for path in PATHS
        for replica in _route(router, path=path).fallback_replicas
    )


def test_files_return_to_a_replica_that_is_no_longer_drained() -> None:
    router = _router()
    before = _replica_by_path(router)

    router.replicas.set_drained(["one:1"])
    router.replicas.set_drained([])

    assert _replica_by_path(router) == before


def test_a_pool_with_only_drained_replicas_sheds_requests() -> None:
    router = _router()
    router.replicas.set_drained(replica.name for replica in POOL.replicas)

    with pytest.raises(CompletionDropped) as dropped:
        _route(router)

    assert dropped.value.finish_reason is FinishReason.SHED


def test_the_first_token_timeout_depends_on_the_mode() -> None:
    router = _router()

    first_token_timeout_s = {mode: _route(router, mode=mode).first_token_timeout_s for mode in Mode}

    assert first_token_timeout_s == {
        mode: LATE_TARGETS * target_ms / 1000 for mode, target_ms in TARGETS_MS.items()
    }


def test_equal_paths_of_two_tenants_prefer_different_replicas() -> None:
    router, prompt = _router(), make_prompt()

    preferred = [
        [route(router, make_admitted(principal, path=path), prompt).replica for path in PATHS[:50]]
        for principal in (ACME_ADA, GLOBEX_GUS)
    ]

    assert preferred[0] != preferred[1]
