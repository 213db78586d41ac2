"""The circuit breaker of a replica: the whole table, and its transitions by requests and probes."""

import pytest

from inference.pools.health.circuit_breaker import TRANSITIONS, CircuitEvent, CircuitState, advance
from inference.pools.health.replica_states import (
    EJECTION_S,
    MAX_FAILURES,
    HealthStatus,
    ReplicaStates,
)
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool

REPLICA, OTHER = make_pool("http://one:1", "http://two:1").replicas


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def replicas(clock: FakeClock) -> ReplicaStates:
    return ReplicaStates(clock)


def _fail(replicas: ReplicaStates, count: int = MAX_FAILURES) -> None:
    for _ in range(count):
        with replicas.attempt(REPLICA) as attempt:
            attempt.mark_failed()


@pytest.mark.parametrize("event", CircuitEvent)
@pytest.mark.parametrize("circuit", CircuitState)
def test_every_event_has_its_place_in_every_state(
    circuit: CircuitState, event: CircuitEvent
) -> None:
    assert advance(circuit, event) is TRANSITIONS[circuit][event]


def test_only_a_failure_opens_it_and_only_a_success_closes_it() -> None:
    into = {
        target: {
            event
            for circuit, row in TRANSITIONS.items()
            for event, after in row.items()
            if after is target and circuit is not target
        }
        for target in CircuitState
    }

    assert into == {
        CircuitState.OPEN: {CircuitEvent.FAILURE, CircuitEvent.THRESHOLD_FAILURE},
        CircuitState.CLOSED: {CircuitEvent.SUCCESS},
        CircuitState.HALF_OPEN: {CircuitEvent.COOLDOWN_OVER},
    }


def test_failures_in_a_row_open_it(replicas: ReplicaStates) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    could_be_asked = replicas.is_available(REPLICA)
    _fail(replicas, 1)

    assert could_be_asked
    assert not replicas.is_available(REPLICA)


def test_a_success_between_them_counts(replicas: ReplicaStates) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    with replicas.attempt(REPLICA) as attempt:
        attempt.mark_succeeded()
    _fail(replicas, MAX_FAILURES - 1)

    assert replicas.is_available(REPLICA)


def test_one_replicas_failures_are_not_anothers(replicas: ReplicaStates) -> None:
    _fail(replicas)

    assert replicas.is_available(OTHER)


def test_it_rests_for_its_time_and_no_longer(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(EJECTION_S - 0.1)
    rests_before = not replicas.is_available(REPLICA)
    clock.pass_s(0.1)

    assert rests_before
    assert replicas.is_available(REPLICA)


def test_half_open_lets_one_trial_through(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(EJECTION_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA):
        may_ask_another = replicas.is_available(REPLICA)

    assert not may_ask_another


def test_a_trial_that_succeeds_closes_it(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(EJECTION_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA) as trial:
        trial.mark_succeeded()

    assert replicas.get_circuit(REPLICA) is CircuitState.CLOSED


def test_a_trial_that_fails_opens_it_for_another_rest(
    replicas: ReplicaStates, clock: FakeClock
) -> None:
    _fail(replicas)
    clock.pass_s(EJECTION_S)
    assert replicas.is_available(REPLICA)

    _fail(replicas, 1)
    clock.pass_s(EJECTION_S - 0.1)

    assert not replicas.is_available(REPLICA)


def test_a_trial_whose_client_leaves_decides_nothing(
    replicas: ReplicaStates, clock: FakeClock
) -> None:
    _fail(replicas)
    clock.pass_s(EJECTION_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA):
        pass

    assert replicas.get_circuit(REPLICA) is CircuitState.HALF_OPEN
    assert replicas.is_available(REPLICA)


def test_a_replica_that_says_it_is_ill_is_left_alone_at_once(replicas: ReplicaStates) -> None:
    replicas.on_health_check(REPLICA, HealthStatus.UNHEALTHY)

    assert not replicas.is_available(REPLICA)


def test_a_replica_that_was_silent_once_is_asked(replicas: ReplicaStates) -> None:
    replicas.on_health_check(REPLICA, HealthStatus.TIMED_OUT)

    assert replicas.is_available(REPLICA)


def test_a_replica_that_stays_silent_is_left_alone(replicas: ReplicaStates) -> None:
    for _ in range(MAX_FAILURES):
        replicas.on_health_check(REPLICA, HealthStatus.TIMED_OUT)

    assert not replicas.is_available(REPLICA)


def test_saying_it_is_well_makes_up_for_no_failure(replicas: ReplicaStates) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    replicas.on_health_check(REPLICA, HealthStatus.HEALTHY)
    _fail(replicas, 1)
    replicas.on_health_check(REPLICA, HealthStatus.HEALTHY)

    assert replicas.get_circuit(REPLICA) is CircuitState.OPEN


def test_what_is_under_way_is_counted_until_it_ends(replicas: ReplicaStates) -> None:
    with replicas.attempt(REPLICA), replicas.attempt(REPLICA), replicas.attempt(OTHER):
        during = (replicas.num_in_flight(REPLICA), replicas.num_in_flight(OTHER))

    assert during == (2, 1)
    assert (replicas.num_in_flight(REPLICA), replicas.num_in_flight(OTHER)) == (0, 0)
