"""A replica's circuit breaker: its transitions, and the effects of requests and health checks.

A call of `is_available` makes an open circuit half open if its cooldown is over.
"""

import pytest

from inference.pools.health.circuit_breaker import TRANSITIONS, CircuitEvent, CircuitState, advance
from inference.pools.health.replica_states import (
    COOLDOWN_S,
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
    """Let `count` requests to REPLICA fail; by default so many that its circuit opens."""
    for _ in range(count):
        with replicas.attempt(REPLICA) as attempt:
            attempt.mark_failed()


@pytest.mark.parametrize("event", CircuitEvent)
@pytest.mark.parametrize("circuit", CircuitState)
def test_every_state_handles_every_event(circuit: CircuitState, event: CircuitEvent) -> None:
    assert advance(circuit, event) is TRANSITIONS[circuit][event]


def test_only_failures_open_the_circuit_and_only_a_success_closes_it() -> None:
    # For each state, the events that lead to it from another state.
    events_by_target = {
        target: {
            event
            for circuit, next_states in TRANSITIONS.items()
            for event, next_state in next_states.items()
            if next_state is target and circuit is not target
        }
        for target in CircuitState
    }

    assert events_by_target == {
        CircuitState.OPEN: {CircuitEvent.FAILURE, CircuitEvent.THRESHOLD_FAILURE},
        CircuitState.CLOSED: {CircuitEvent.SUCCESS},
        CircuitState.HALF_OPEN: {CircuitEvent.COOLDOWN_OVER},
    }


def test_consecutive_failures_open_the_circuit(replicas: ReplicaStates) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    assert replicas.is_available(REPLICA)

    _fail(replicas, 1)

    assert not replicas.is_available(REPLICA)


def test_a_success_resets_the_count_of_failures(replicas: ReplicaStates) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    with replicas.attempt(REPLICA) as attempt:
        attempt.mark_succeeded()
    _fail(replicas, MAX_FAILURES - 1)

    assert replicas.is_available(REPLICA)


def test_failures_of_a_replica_do_not_affect_another(replicas: ReplicaStates) -> None:
    _fail(replicas)

    assert replicas.is_available(OTHER)


def test_an_open_circuit_stays_open_for_the_cooldown(
    replicas: ReplicaStates, clock: FakeClock
) -> None:
    _fail(replicas)
    clock.pass_s(COOLDOWN_S - 0.1)
    assert not replicas.is_available(REPLICA)

    clock.pass_s(0.1)

    assert replicas.is_available(REPLICA)


def test_a_half_open_circuit_allows_one_trial(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(COOLDOWN_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA):
        is_available_during_trial = replicas.is_available(REPLICA)

    assert not is_available_during_trial


def test_a_successful_trial_closes_the_circuit(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(COOLDOWN_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA) as trial:
        trial.mark_succeeded()

    assert replicas.get_circuit(REPLICA) is CircuitState.CLOSED


def test_a_failed_trial_opens_the_circuit_again(replicas: ReplicaStates, clock: FakeClock) -> None:
    _fail(replicas)
    clock.pass_s(COOLDOWN_S)
    assert replicas.is_available(REPLICA)

    _fail(replicas, 1)
    clock.pass_s(COOLDOWN_S - 0.1)

    assert not replicas.is_available(REPLICA)


def test_a_trial_without_a_result_allows_another_trial(
    replicas: ReplicaStates, clock: FakeClock
) -> None:
    _fail(replicas)
    clock.pass_s(COOLDOWN_S)
    assert replicas.is_available(REPLICA)

    with replicas.attempt(REPLICA):
        pass  # neither failed nor succeeded

    assert replicas.get_circuit(REPLICA) is CircuitState.HALF_OPEN
    assert replicas.is_available(REPLICA)


def test_an_unhealthy_replica_is_unavailable_at_once(replicas: ReplicaStates) -> None:
    replicas.on_health_check(REPLICA, HealthStatus.UNHEALTHY)

    assert not replicas.is_available(REPLICA)


def test_a_replica_stays_available_after_one_timed_out_health_check(
    replicas: ReplicaStates,
) -> None:
    replicas.on_health_check(REPLICA, HealthStatus.TIMED_OUT)

    assert replicas.is_available(REPLICA)


def test_a_replica_with_several_timed_out_health_checks_is_unavailable(
    replicas: ReplicaStates,
) -> None:
    for _ in range(MAX_FAILURES):
        replicas.on_health_check(REPLICA, HealthStatus.TIMED_OUT)

    assert not replicas.is_available(REPLICA)


def test_a_passed_health_check_neither_resets_failures_nor_closes_the_circuit(
    replicas: ReplicaStates,
) -> None:
    _fail(replicas, MAX_FAILURES - 1)
    replicas.on_health_check(REPLICA, HealthStatus.HEALTHY)
    _fail(replicas, 1)
    replicas.on_health_check(REPLICA, HealthStatus.HEALTHY)

    assert replicas.get_circuit(REPLICA) is CircuitState.OPEN


def test_requests_in_flight_are_counted_until_they_end(replicas: ReplicaStates) -> None:
    with replicas.attempt(REPLICA), replicas.attempt(REPLICA), replicas.attempt(OTHER):
        during = (replicas.num_in_flight(REPLICA), replicas.num_in_flight(OTHER))

    assert during == (2, 1)
    assert (replicas.num_in_flight(REPLICA), replicas.num_in_flight(OTHER)) == (0, 0)
