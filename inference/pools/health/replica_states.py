"""The state of each replica on this gateway: circuit, requests in flight, and draining."""

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

# Between two searches for overdue requests. With the default latency targets, a first token is late
# after 0.4 s or more (LATE_TARGETS in route.py).
CHECK_INTERVAL_S: Final = 0.05
# The time from the opening of a circuit to a trial request. A killed engine takes longer to start:
# the trial fails, the circuit opens again, and requests still go to other replicas.
COOLDOWN_S: Final = 2.0
# A single failure may be the fault of the request or of a connection.
MAX_FAILURES: Final = 3  # in a row
log = structlog.get_logger(__name__)


class HealthStatus(StrEnum):
    """The result of a health check."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"  # the replica reports this, or there is no server at its address
    # No response in time, or the connection was lost: the replica is dead or busy.
    TIMED_OUT = "timed_out"


@dataclass(slots=True)
class _ReplicaHealth:
    circuit: CircuitState = CircuitState.CLOSED
    num_failures: int = 0  # in a row
    cooldown_until_s: float = 0.0  # monotonic; while the circuit is open
    has_trial: bool = False  # a trial request, sent while the circuit was half open, is in flight
    num_in_flight: int = 0  # of this gateway, without preemptible requests
    num_rerouted: int = 0  # requests that moved to another replica because this one was late
    preemptible_tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    outlier_detector: "LatencyOutlierDetector[ReplicaAttempt]" = field(
        default_factory=LatencyOutlierDetector
    )

    @contextmanager
    def preempt_and_count(self) -> Iterator[None]:
        """Cancel all preemptible requests. Count a request as in flight until the block ends."""
        for task in self.preemptible_tasks:
            task.cancel()
        self.preemptible_tasks.clear()
        self.num_in_flight += 1
        try:
            yield
        finally:
            self.num_in_flight -= 1

    @contextmanager
    def register_preemptible(self) -> Iterator[None]:
        task = _current_task()
        self.preemptible_tasks.add(task)
        try:
            yield
        finally:
            self.preemptible_tasks.discard(task)


@dataclass(slots=True, eq=False)
class ReplicaAttempt:
    """One request at a replica.

    It has no result if it ends without any text and without a failure of the replica.
    """

    clock: Clock
    outlier_detector: "LatencyOutlierDetector[ReplicaAttempt]"  # of the replica
    fallback: Replica | None = None  # used if this replica is late
    task: asyncio.Task[Any] | None = None  # cancelled to use the fallback; None: no fallback
    is_rerouted: bool = False  # `reroute` has cancelled the task
    has_succeeded: bool | None = None  # None: no result

    def mark_succeeded(self) -> None:
        """Record that the replica generated something. May be called for each chunk."""
        if not self.has_succeeded:
            self.outlier_detector.on_first_token(self, self.clock.monotonic_s())
        self.has_succeeded = True

    def mark_failed(self) -> None:
        self.has_succeeded = False

    def reroute(self) -> bool:
        """Cancel the attempt, so that it ends with `engine_timeout`.

        Return False if there is no fallback, or if the attempt is already being cancelled.
        """
        if self.task is None or self.task.cancelling():
            return False
        self.is_rerouted = self.task.cancel()
        return self.is_rerouted

    def undo_cancellation(self) -> bool:
        """Remove the cancellation by `reroute` from the task.

        Return False if `reroute` did not cancel the task, or if others cancelled it, too.
        """
        return self.is_rerouted and self.task is not None and self.task.uncancel() == 0


class ReplicaStates:
    """The states of all replicas, by URL. Used on one event loop only, so no lock is needed.

    A state is kept until `retain` deletes it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._health_by_url: dict[str, _ReplicaHealth] = {}
        self._drained: frozenset[str] = frozenset()  # names of replicas

    def set_drained(self, names: Iterable[str]) -> None:
        """Drain exactly these replicas, and no others. Their requests in flight continue."""
        drained = frozenset(names)
        for name in drained ^ self._drained:  # those that change
            log.info("replica.drained", replica=name, is_drained=name in drained)
        self._drained = drained

    def retain(self, urls: Collection[str]) -> None:
        """Delete the states of all other replicas, unless they have requests in flight."""
        for url, health in tuple(self._health_by_url.items()):
            if url not in urls and not health.num_in_flight and not health.preemptible_tasks:
                del self._health_by_url[url]

    def is_drained(self, replica: Replica) -> bool:
        return replica.name in self._drained

    def cooldown_s(self, replica: Replica) -> float | None:
        """Return the remaining cooldown in seconds; None if the circuit is not open."""
        health = self._get_health(replica)
        if health.circuit is not CircuitState.OPEN:
            return None
        return max(0.0, health.cooldown_until_s - self._clock.monotonic_s())

    def is_available(self, replica: Replica) -> bool:
        """Return whether the circuit allows a request.

        After the cooldown, an open circuit becomes half open.
        """
        health = self._get_health(replica)
        if health.circuit is CircuitState.OPEN and self._is_cooled_down(health):
            self._advance(replica, CircuitEvent.COOLDOWN_OVER)
        if health.circuit is CircuitState.HALF_OPEN:
            return not health.has_trial
        return health.circuit is CircuitState.CLOSED

    def is_ejected(self, replica: Replica) -> bool:
        """Return whether other replicas are preferred, because first tokens of this one were late.

        The circuit has no influence.
        """
        return self._get_health(replica).outlier_detector.is_ejected(self._clock.monotonic_s())

    def get_circuit(self, replica: Replica) -> CircuitState:
        return self._get_health(replica).circuit

    def num_in_flight(self, replica: Replica) -> int:
        """Return this gateway's requests in flight, without preemptible ones."""
        return self._get_health(replica).num_in_flight

    def num_rerouted(self, replica: Replica) -> int:
        """Return how many requests moved to another replica because this one was late."""
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
        """Count a request as in flight until the block ends. Its result then advances the circuit.

        A preemptible request is not counted. It is cancelled when the replica gets a request that
        is not preemptible. Raises EngineError (`engine_timeout`) if the first token is late and
        `reroute_overdue` prefers `fallback`.
        """
        health = self._get_health(replica)
        task = None if fallback is None else _current_task()
        attempt = ReplicaAttempt(self._clock, health.outlier_detector, fallback, task)
        is_trial = health.circuit is CircuitState.HALF_OPEN and not health.has_trial
        health.has_trial = health.has_trial or is_trial
        if not is_preemptible:  # preemptible requests may be late: they have the last priority
            until_s = self._clock.monotonic_s() + first_token_timeout_s
            health.outlier_detector.on_request(attempt, until_s=until_s)
        try:
            with health.register_preemptible() if is_preemptible else health.preempt_and_count():
                yield attempt
        except asyncio.CancelledError:
            if not attempt.undo_cancellation():
                raise
            raise EngineError(
                "engine_timeout", "The engine takes too long.", http_status=503
            ) from None
        finally:
            health.outlier_detector.on_ended(attempt, self._clock.monotonic_s())
            if is_trial:
                health.has_trial = False
            if attempt.has_succeeded is not None:
                self._record_result(replica, has_succeeded=attempt.has_succeeded)

    def reroute_overdue(self) -> None:
        """Cancel overdue attempts at ejected replicas if their fallback can take the request.

        Call this periodically, so that no attempt needs its own timer.
        """
        now_s = self._clock.monotonic_s()
        for url, health in tuple(self._health_by_url.items()):
            if not health.outlier_detector.is_ejected(now_s):
                continue
            overdue = health.outlier_detector.find_overdue(now_s)
            num_rerouted = sum(
                attempt.reroute() for attempt in overdue if self._can_use_fallback(attempt)
            )
            health.num_rerouted += num_rerouted
            if num_rerouted:
                log.info("replica.ejected", url=url, num_moved=num_rerouted)

    def _can_use_fallback(self, attempt: ReplicaAttempt) -> bool:
        fallback = attempt.fallback
        if fallback is None or self.is_drained(fallback) or self.is_ejected(fallback):
            return False
        return self.get_circuit(fallback) is CircuitState.CLOSED

    def on_health_check(self, replica: Replica, status: HealthStatus) -> None:
        """Apply the result of a health check.

        A healthy result does not close the circuit, because a replica that reports to be healthy
        may fail to generate (such as vLLM while it shuts down). Only generated tokens close it.
        """
        if status is HealthStatus.UNHEALTHY:
            self._advance(replica, CircuitEvent.THRESHOLD_FAILURE)
        elif status is HealthStatus.TIMED_OUT:
            self._record_result(replica, has_succeeded=False)

    def _record_result(self, replica: Replica, *, has_succeeded: bool) -> None:
        health = self._get_health(replica)
        if has_succeeded:
            health.num_failures = 0
            self._advance(replica, CircuitEvent.SUCCESS)
            return
        health.num_failures += 1
        is_threshold_reached = health.num_failures >= MAX_FAILURES
        self._advance(
            replica,
            CircuitEvent.THRESHOLD_FAILURE if is_threshold_reached else CircuitEvent.FAILURE,
        )

    def _advance(self, replica: Replica, event: CircuitEvent) -> None:
        health = self._get_health(replica)
        before, health.circuit = health.circuit, advance(health.circuit, event)
        # Only failures lead to this state. Each failure starts the cooldown again.
        if health.circuit is CircuitState.OPEN:
            health.cooldown_until_s = self._clock.monotonic_s() + COOLDOWN_S
        if health.circuit is not before:
            log.info("replica.circuit_changed", replica=replica.name, circuit=health.circuit.value)

    def _is_cooled_down(self, health: _ReplicaHealth) -> bool:
        return self._clock.monotonic_s() >= health.cooldown_until_s

    def _get_health(self, replica: Replica) -> _ReplicaHealth:
        health = self._health_by_url.get(replica.url)
        if health is None:
            health = self._health_by_url[replica.url] = _ReplicaHealth()
        return health


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "an attempt is awaited in a task"
    return task


async def reroute_overdue(replicas: ReplicaStates, *, every_s: float = CHECK_INTERVAL_S) -> None:
    """Call `ReplicaStates.reroute_overdue` periodically until cancelled."""
    while True:
        replicas.reroute_overdue()
        await asyncio.sleep(every_s)
