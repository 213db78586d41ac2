"""route: which replica a prompt goes to."""

from collections import Counter
from typing import Any

from caret.contracts.policy import Mode
from inference.pools.engine import EngineRequest
from inference.pools.health import REST_S
from inference.routing.route import Router, route
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool, make_router
from tests.fakes.requests import make_admitted, make_prompt
from tests.fakes.tenants import GLOBEX, make_principal

POOL = make_pool("http://one:1", "http://two:1", "http://three:1")
PATHS = [f"src/module_{n}.py" for n in range(300)]
ACME_ADA = make_principal()
GLOBEX_GUS = make_principal(tenant_id=GLOBEX)


def _router(clock: FakeClock | None = None) -> Router:
    return make_router(POOL, clock=clock)


def _route(router: Router, *, is_single_line: bool = False, **fields: Any) -> EngineRequest:
    admitted = make_admitted(ACME_ADA, **fields)
    with route(router, admitted, make_prompt(is_single_line=is_single_line)) as asked:
        return asked


def _shares(router: Router) -> dict[str, str]:
    return {path: _route(router, path=path).replica.name for path in PATHS}


def test_the_same_file_goes_to_the_same_replica() -> None:
    assert _shares(_router()) == _shares(_router())


def test_files_are_spread_over_the_replicas() -> None:
    counts = Counter(_shares(_router()).values())

    assert set(counts) == {"one:1", "two:1", "three:1"}
    assert min(counts.values()) > 60


def test_only_the_share_of_a_resting_replica_moves() -> None:
    router = _router()
    before = _shares(router)

    router.health.failed(POOL.replicas[0])
    after = _shares(router)

    assert "one:1" not in after.values()
    assert {p: r for p, r in after.items() if before[p] != "one:1"} == {
        p: r for p, r in before.items() if r != "one:1"
    }


def test_a_replicas_share_comes_back_with_it() -> None:
    clock = FakeClock()
    router = _router(clock)
    before = _shares(router)

    router.health.failed(POOL.replicas[0])
    clock.pass_s(REST_S)

    assert _shares(router) == before


def test_a_pool_of_which_no_replica_is_well_is_asked_all_the_same() -> None:
    router = _router()
    before = _shares(router)

    for replica in POOL.replicas:
        router.health.failed(replica)

    assert _shares(router) == before


def test_the_neighbour_has_a_salt_of_its_own() -> None:
    with (
        route(_router(), make_admitted(ACME_ADA), make_prompt()) as ours,
        route(_router(), make_admitted(GLOBEX_GUS), make_prompt()) as theirs,
    ):
        pass

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
