"""What this gateway knows of each replica: its circuit, how much it has under way there, and if an
operator has drained it."""

import asyncio
import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import structlog

from caret.foundation.clock import Clock
from inference.errors import EngineError
from inference.pools.health.circuit_breaker import CircuitEvent, CircuitState, advance
from inference.pools.health.outlier_detection import LatencyOutlierDetector
from inference.pools.pool_config import Replica

# An engine that was killed needs longer to come back; others are asked meanwhile.
EJECTION_S: Final = 2.0
# One request that is lost may be the request's fault, or a connection's.
MAX_FAILURES: Final = 3  # in a row
log = structlog.get_logger(__name__)


class HealthStatus(StrEnum):
    """What a replica says when it is asked how it is."""

    HEALTHY = "well"
    UNHEALTHY = "ill"  # it says so, or nobody is at its address
    TIMED_OUT = "silent"  # nothing in time: dead, or only busy


@dataclass(slots=True)
class _ReplicaHealth:
    circuit: CircuitState = CircuitState.CLOSED
    num_failures: int = 0  # in a row
    cooldown_until_s: float = 0.0  # monotonic; while it is open
    has_trial: bool = False  # while it is half open: a request tries it
    num_in_flight: int = 0  # without what gives way
    num_rerouted: int = 0  # requests that another was asked instead, since it was late
    preemptible: set[asyncio.Task[Any]] = field(default_factory=set)
    lateness: "LatencyOutlierDetector[ReplicaAttempt]" = field(
        default_factory=LatencyOutlierDetector
    )

    @contextmanager
    def count_in_flight(self) -> Iterator[None]:
        for task in self.preemptible:
            task.cancel()
        self.preemptible.clear()
        self.num_in_flight += 1
        try:
            yield
        finally:
            self.num_in_flight -= 1

    @contextmanager
    def register_preemptible(self) -> Iterator[None]:
        task = _current_task()
        self.preemptible.add(task)
        try:
            yield
        finally:
            self.preemptible.discard(task)


@dataclass(slots=True, eq=False)
class ReplicaAttempt:
    """One request at a replica; it says what became of it, or, when it was cut short, nothing."""

    clock: Clock
    lateness: "LatencyOutlierDetector[ReplicaAttempt]"
    fallback: Replica | None = None  # to be asked when this one is late
    task: asyncio.Task[Any] | None = None  # that awaits it, where there is one elsewhere
    is_rerouted: bool = False
    has_succeeded: bool | None = None

    def mark_succeeded(self) -> None:
        """Something was generated."""
        if not self.has_succeeded:
            self.lateness.on_first_token(self, self.clock.monotonic_s())
        self.has_succeeded = True

    def mark_failed(self) -> None:
        self.has_succeeded = False

    def reroute(self) -> bool:
        """Ends it with `engine_timeout`, unless it is about to end for another reason."""
        if self.task is None or self.task.cancelling():
            return False
        self.is_rerouted = self.task.cancel()
        return self.is_rerouted

    def was_rerouted(self) -> bool:
        """To be asked once, when its task was cancelled."""
        return self.is_rerouted and self.task is not None and self.task.uncancel() == 0


class ReplicaStates:
    """One event loop uses it, so it needs no lock. Knows those that it was asked about, by address,
    until `retain` is told that they are gone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._conditions: dict[str, _ReplicaHealth] = {}
        self._drained: frozenset[str] = frozenset()  # names

    def set_drained(self, names: Iterable[str]) -> None:
        """These and no others; what is under way there ends as it would."""
        drained = frozenset(names)
        for name in drained ^ self._drained:
            log.info("replica.drained", replica=name, is_drained=name in drained)
        self._drained = drained

    def retain(self, urls: Collection[str]) -> None:
        """Forgets the others, but those where something is under way."""
        for url, condition in tuple(self._conditions.items()):
            if url not in urls and not condition.num_in_flight and not condition.preemptible:
                del self._conditions[url]

    def is_drained(self, replica: Replica) -> bool:
        return replica.name in self._drained

    def cooldown_s(self, replica: Replica) -> float | None:
        """How much longer it is left alone; None: its circuit is not open."""
        condition = self._get_health(replica)
        if condition.circuit is not CircuitState.OPEN:
            return None
        return max(0.0, condition.cooldown_until_s - self._clock.monotonic_s())

    def is_available(self, replica: Replica) -> bool:
        condition = self._get_health(replica)
        if condition.circuit is CircuitState.OPEN and self._is_cooled_down(condition):
            self._advance(replica, CircuitEvent.COOLDOWN_OVER)
        if condition.circuit is CircuitState.HALF_OPEN:
            return not condition.has_trial
        return condition.circuit is CircuitState.CLOSED

    def is_ejected(self, replica: Replica) -> bool:
        """Whether others of its pool are better asked, though its circuit is closed."""
        return self._get_health(replica).lateness.is_ejected(self._clock.monotonic_s())

    def get_circuit(self, replica: Replica) -> CircuitState:
        return self._get_health(replica).circuit

    def num_in_flight(self, replica: Replica) -> int:
        return self._get_health(replica).num_in_flight

    def num_rerouted(self, replica: Replica) -> int:
        """Requests that waited there for too long, so that another was asked."""
        return self._get_health(replica).num_rerouted

    @contextmanager
    def attempt(
        self,
        replica: Replica,
        *,
        is_preemptible: bool = False,
        first_token_timeout_s: float = math.inf,
        fallback: Replica | None = None,
    ) -> Iterator[ReplicaAttempt]:
        """Counts as under way until the context is left; what it says then moves the circuit.

        What gives way does not count, and its task is cancelled when something else comes.

        Raises EngineError (`engine_timeout`) when it has waited for too long, and `fallback` is
        better asked (`reroute_overdue`).
        """
        condition = self._get_health(replica)
        task = None if fallback is None else _current_task()
        attempt = ReplicaAttempt(self._clock, condition.lateness, fallback, task)
        is_trial = condition.circuit is CircuitState.HALF_OPEN and not condition.has_trial
        condition.has_trial = condition.has_trial or is_trial
        if not is_preemptible:  # it waits for all others
            until_s = self._clock.monotonic_s() + first_token_timeout_s
            condition.lateness.on_request(attempt, until_s=until_s)
        try:
            with (
                condition.register_preemptible() if is_preemptible else condition.count_in_flight()
            ):
                yield attempt
        except asyncio.CancelledError:
            if not attempt.was_rerouted():
                raise
            raise EngineError(
                "engine_timeout", "The engine takes too long.", http_status=503
            ) from None
        finally:
            condition.lateness.on_abandoned(attempt, self._clock.monotonic_s())
            if is_trial:
                condition.has_trial = False
            if attempt.has_succeeded is not None:
                self._record_result(replica, has_succeeded=attempt.has_succeeded)

    def reroute_overdue(self) -> None:
        """Ends the attempts that still wait at a replica that is late, where another is well and
        quick. To be called every now and then: requests need no clocks of their own."""
        now_s = self._clock.monotonic_s()
        for url, condition in tuple(self._conditions.items()):
            if not condition.lateness.is_ejected(now_s):
                continue
            overdue = condition.lateness.find_overdue(now_s)
            num_moved = sum(
                attempt.reroute() for attempt in overdue if self._has_better_fallback(attempt)
            )
            condition.num_rerouted += num_moved
            if num_moved:
                log.info("replica.ejected", url=url, num_moved=num_moved)

    def _has_better_fallback(self, attempt: ReplicaAttempt) -> bool:
        other = attempt.fallback
        if other is None or self.is_drained(other) or self.is_ejected(other):
            return False
        return self.get_circuit(other) is CircuitState.CLOSED

    def on_health_check(self, replica: Replica, wellness: HealthStatus) -> None:
        """A replica that says it is well may still answer nothing (vLLM while it shuts down does),
        so only what it generates closes its circuit."""
        if wellness is HealthStatus.UNHEALTHY:
            self._advance(replica, CircuitEvent.THRESHOLD_FAILURE)
        elif wellness is HealthStatus.TIMED_OUT:
            self._record_result(replica, has_succeeded=False)

    def _record_result(self, replica: Replica, *, has_succeeded: bool) -> None:
        condition = self._get_health(replica)
        if has_succeeded:
            condition.num_failures = 0
            self._advance(replica, CircuitEvent.SUCCESS)
            return
        condition.num_failures += 1
        is_last = condition.num_failures >= MAX_FAILURES
        self._advance(replica, CircuitEvent.THRESHOLD_FAILURE if is_last else CircuitEvent.FAILURE)

    def _advance(self, replica: Replica, event: CircuitEvent) -> None:
        condition = self._get_health(replica)
        before, condition.circuit = condition.circuit, advance(condition.circuit, event)
        if condition.circuit is CircuitState.OPEN and event is not CircuitEvent.COOLDOWN_OVER:
            condition.cooldown_until_s = self._clock.monotonic_s() + EJECTION_S
        if condition.circuit is not before:
            log.info(
                "replica.circuit_changed", replica=replica.name, circuit=condition.circuit.value
            )

    def _is_cooled_down(self, condition: _ReplicaHealth) -> bool:
        return self._clock.monotonic_s() >= condition.cooldown_until_s

    def _get_health(self, replica: Replica) -> _ReplicaHealth:
        condition = self._conditions.get(replica.url)
        if condition is None:
            condition = self._conditions[replica.url] = _ReplicaHealth()
        return condition


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "an attempt is awaited in a task"
    return task
