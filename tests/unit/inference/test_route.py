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
from inference.pools.health.outlier_detection import EJECTION_S as LATENESS_REST_S
from inference.pools.health.outlier_detection import MAX_CONSECUTIVE_LATE
from inference.pools.health.replica_states import EJECTION_S, HealthStatus
from inference.pools.pool_config import Replica
from inference.prefix_cache.kv_events import BlockStored
from inference.routing.consistent_hashing import ALWAYS_ROOM
from inference.routing.route import LATE_TARGETS, Router, route
from tests.fakes.clock import FakeClock
from tests.fakes.pools import TARGETS_MS, make_pool, make_router
from tests.fakes.requests import make_admitted, make_prompt
from tests.fakes.tenants import GLOBEX, make_principal

POOL = make_pool("http://one:1", "http://two:1", "http://three:1")
PUBLISHING = replace(
    POOL,
    replicas=tuple(replace(each, kv_events="tcp://engine:5557") for each in POOL.replicas[:2]),
)
PATHS = [f"src/module_{n}.py" for n in range(300)]
ACME_ADA = make_principal()
GLOBEX_GUS = make_principal(tenant_id=GLOBEX)


def _router(clock: FakeClock | None = None) -> Router:
    return make_router(POOL, clock=clock)


def _route(router: Router, *, is_single_line: bool = False, **fields: Any) -> EngineRequest:
    admitted = make_admitted(ACME_ADA, **fields)
    return route(router, admitted, make_prompt(is_single_line=is_single_line))


def _loses(router: Router, replica: Replica) -> None:
    router.replicas.on_health_check(replica, HealthStatus.UNHEALTHY)


def _shares(router: Router) -> dict[str, str]:
    return {path: _route(router, path=path).replica.name for path in PATHS}


def test_the_same_file_goes_to_the_same_replica() -> None:
    assert _shares(_router()) == _shares(_router())


def test_files_are_spread_over_the_replicas() -> None:
    counts = Counter(_shares(_router()).values())

    assert set(counts) == {"one:1", "two:1", "three:1"}
    assert min(counts.values()) > 60


def test_only_the_share_of_a_lost_replica_moves() -> None:
    router = _router()
    before = _shares(router)

    _loses(router, POOL.replicas[0])
    after = _shares(router)

    assert "one:1" not in after.values()
    assert {p: r for p, r in after.items() if before[p] != "one:1"} == {
        p: r for p, r in before.items() if r != "one:1"
    }


def test_a_replicas_share_comes_back_with_it() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _shares(router)

    _loses(router, POOL.replicas[0])
    clock.pass_s(EJECTION_S)

    assert _shares(router) == before


def test_a_pool_of_which_no_replica_is_well_is_asked_all_the_same() -> None:
    router = _router()
    before = _shares(router)

    for replica in POOL.replicas:
        _loses(router, replica)

    assert _shares(router) == before


def test_a_replica_that_keeps_people_waiting_is_spared_and_comes_back() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _shares(router)

    with _waited_for(router, POOL.replicas[0], clock=clock):
        meanwhile = _shares(router)
    clock.pass_s(LATENESS_REST_S)

    assert "one:1" not in meanwhile.values()
    assert _shares(router) == before


def test_a_pool_that_is_late_as_a_whole_is_asked_as_ever() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _shares(router)

    with _waited_for(router, *POOL.replicas, clock=clock):
        assert _shares(router) == before


async def test_warm_ups_that_wait_make_nobody_late() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _shares(router)

    with _waited_for(router, POOL.replicas[0], clock=clock, is_preemptible=True):
        assert _shares(router) == before


@contextmanager
def _waited_for(
    router: Router, *replicas: Replica, clock: FakeClock, is_preemptible: bool = False
) -> Iterator[None]:
    """Let several requests wait at these replicas for longer than is acceptable."""
    with ExitStack() as stack:
        for replica in MAX_CONSECUTIVE_LATE * replicas:
            attempt = router.replicas.attempt(
                replica, is_preemptible=is_preemptible, first_token_timeout_s=1.0
            )
            stack.enter_context(attempt)
        clock.pass_s(2.0)
        yield


def test_under_light_load_a_file_stays_where_its_prefix_is() -> None:
    router = _router()
    first = _route(router, path="busy.py").replica

    with ExitStack() as stack:
        for _ in range(ALWAYS_ROOM - 1):
            stack.enter_context(router.replicas.attempt(first))
        second = _route(router, path="busy.py").replica

    assert second is first


def test_a_full_replicas_requests_spill_to_one_neighbour() -> None:
    router = _router()
    asked = _route(router, path="busy.py")

    with ExitStack() as stack:
        for _ in range(ALWAYS_ROOM):
            stack.enter_context(router.replicas.attempt(asked.replica))
        spilled = [_route(router, path="busy.py").replica for _ in range(3)]

    assert spilled == list(asked.fallback_replicas) * 3


def test_it_says_how_much_is_under_way_there() -> None:
    router = _router()
    replica = _route(router).replica

    with router.replicas.attempt(replica), router.replicas.attempt(replica):
        assert _route(router).num_in_flight_at_replica == 2


def test_a_request_without_a_path_goes_where_its_beginning_has_been() -> None:
    router = _router()
    prompts = [
        replace(make_prompt(), token_ids=[head] * 64 + [last])
        for head in range(20)
        for last in range(3)
    ]
    admitted = make_admitted(ACME_ADA, path="")

    names = [route(router, admitted, prompt).replica.name for prompt in prompts]

    assert all(len(set(names[n : n + 3])) == 1 for n in range(0, 60, 3))
    assert len(set(names)) == len(POOL.replicas)


def test_the_replica_that_holds_clearly_more_of_a_prompt_is_asked() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)
    (holder,) = before.fallback_replicas

    _holds(router, before.replica, num_tokens=100, salt=before.salt)
    _holds(router, holder, num_tokens=300, salt=before.salt)

    after = route(router, admitted, prompt)
    assert (after.replica, after.fallback_replicas[0]) == (holder, before.replica)


def test_a_little_more_moves_nothing() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)

    _holds(router, before.replica, num_tokens=200, salt=before.salt)
    _holds(router, before.fallback_replicas[0], num_tokens=300, salt=before.salt)

    assert route(router, admitted, prompt).replica is before.replica


def test_a_full_replica_is_not_asked_for_what_it_holds() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    admitted = make_admitted(ACME_ADA)
    before = route(router, admitted, prompt)
    _holds(router, before.replica, num_tokens=100, salt=before.salt)
    _holds(router, before.fallback_replicas[0], num_tokens=400, salt=before.salt)

    with ExitStack() as stack:
        for _ in range(ALWAYS_ROOM):
            stack.enter_context(router.replicas.attempt(before.fallback_replicas[0]))
        during = route(router, admitted, prompt)

    assert during.replica is before.replica


def test_the_neighbours_blocks_count_for_nothing() -> None:
    router = make_router(PUBLISHING)
    prompt = replace(make_prompt(), token_ids=list(range(400)))
    before = route(router, make_admitted(ACME_ADA), prompt)
    theirs = route(router, make_admitted(GLOBEX_GUS), prompt)

    _holds(router, before.replica, num_tokens=100, salt=theirs.salt)
    _holds(router, before.fallback_replicas[0], num_tokens=400, salt=theirs.salt)

    assert route(router, make_admitted(ACME_ADA), prompt).replica is before.replica


def _holds(router: Router, replica: Replica, *, num_tokens: int, salt: str) -> None:
    router.index.add_replica(replica.url).apply(
        BlockStored(
            block_hashes=list(range(num_tokens // 4)),
            parent_block_hash=None,
            token_ids=list(range(num_tokens)),
            block_size=4,
            extra_keys=[[salt], *[None] * (num_tokens // 4 - 1)],
        )
    )


def test_the_one_to_ask_next_is_well_too() -> None:
    router = _router()
    asked = _route(router, path="a.py")

    _loses(router, asked.fallback_replicas[0])

    (spare,) = _route(router, path="a.py").fallback_replicas
    assert spare not in (asked.replica, *asked.fallback_replicas)


def test_a_pool_of_one_has_nobody_else_to_ask() -> None:
    assert _route(make_router()).fallback_replicas == ()


def test_the_neighbour_has_a_salt_of_its_own() -> None:
    ours = route(_router(), make_admitted(ACME_ADA), make_prompt())
    theirs = route(_router(), make_admitted(GLOBEX_GUS), make_prompt())

    assert ours.salt != theirs.salt


def test_the_engine_ends_single_lines_itself() -> None:
    asked = _route(_router(), is_single_line=True, stop=("x",))

    assert asked.stop == ("x", "\n")


def test_the_engine_does_not_end_other_completions_with_the_line() -> None:
    assert _route(_router(), stop=("x",)).stop == ("x",)


def test_what_is_typed_leaves_the_queue_before_what_is_asked_for() -> None:
    priorities = [_route(_router(), mode=mode).priority for mode in Mode]

    assert priorities == [0, 1, 2, 2, 3]


def test_half_a_surrogate_pair_does_no_harm() -> None:
    assert _route(_router(), path="\ud800.py", repository="\ud800").replica in POOL.replicas


def test_a_drained_replica_is_asked_nothing_and_the_others_keep_their_share() -> None:
    router = _router()
    before = _shares(router)

    router.replicas.set_drained(["one:1"])
    after = _shares(router)

    assert "one:1" not in after.values()
    assert all(after[p] == r for p, r in before.items() if r != "one:1")
    assert all(
        each.name != "one:1"
        for path in PATHS
        for each in _route(router, path=path).fallback_replicas
    )


def test_a_drained_replica_comes_back_with_its_share() -> None:
    router = _router()
    before = _shares(router)

    router.replicas.set_drained(["one:1"])
    router.replicas.set_drained([])

    assert _shares(router) == before


def test_a_pool_whose_replicas_are_all_drained_sheds() -> None:
    router = _router()
    router.replicas.set_drained(replica.name for replica in POOL.replicas)

    with pytest.raises(CompletionDropped) as dropped:
        _route(router)

    assert dropped.value.finish is FinishReason.SHED


def test_how_long_a_first_token_may_take_is_by_its_kind() -> None:
    router = _router()

    first_token_timeout_s = {mode: _route(router, mode=mode).first_token_timeout_s for mode in Mode}

    assert first_token_timeout_s == {
        mode: LATE_TARGETS * target_ms / 1000 for mode, target_ms in TARGETS_MS.items()
    }


def test_tenants_with_files_of_the_same_names_prefer_different_replicas() -> None:
    router, prompt = _router(), make_prompt()

    preferred = [
        [route(router, make_admitted(who, path=path), prompt).replica for path in PATHS[:50]]
        for who in (ACME_ADA, GLOBEX_GUS)
    ]

    assert preferred[0] != preferred[1]
