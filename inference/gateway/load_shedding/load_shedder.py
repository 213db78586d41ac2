"""Load shedding: rejects requests that a pool cannot serve in time, the least urgent ones first.

Each pool has a limit of requests in flight on this gateway, learnt from the latency of first tokens
(`adaptive_limit`). Prefetches are shed from half of the limit on, automatic requests near the
limit, and manual ones at the limit. Near the limit, requests of tenants above their fair share are
shed as well (`fair_share`). Prefetches are also shed in two other cases: while requests queue and
the p99 of the first token is over its target, and while the engines' batches are full (if their
size is known). A pool without requests in flight always accepts the next request.

A request counts as late as soon as its first token is overdue. The limit also decreases when more
requests wait than the pool can answer in time at its best recent rate.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason
from caret.foundation.clock import Clock
from caret.foundation.ids import RequestId, TenantId
from inference.completion.request import CompletionRequest
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, EngineError
from inference.gateway.load_shedding.adaptive_limit import CubicLimit
from inference.gateway.load_shedding.fair_share import FairShareLimiter
from inference.gateway.load_shedding.rolling_quantiles import RollingQuantiles

_FLOOR_PER_REPLICA: Final = 2  # requests; the limit is never lower
_INITIAL_BATCHES: Final = 2  # the first limit in batches: one runs, and one waits
_CHECK_INTERVAL_S: Final = 0.002  # between two checks of the waiting requests
# If an engine rejects a request, the latency is unknown. It counts as this many times the target.
_REFUSED_RATIO: Final = 2.0
_GUARDED_QUANTILE: Final = 0.99  # the quantile of first tokens that is compared with the target
_MIN_SLOT_S: Final = 0.25  # minimum length of a time slot in which first tokens are counted
_NUM_SLOTS: Final = 20  # time slots that are remembered
_MIN_FIRST_TOKENS: Final = 5  # in the best slot; with fewer, the pool's rate is unknown
_LONG_WAIT_RATIO: Final = 0.4  # of the target; a shorter wait predicts nothing


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    num_replicas: int
    max_num_seqs: int | None = None  # requests that all replicas run at once; None: unknown

    @property
    def floor(self) -> int:
        return _FLOOR_PER_REPLICA * max(1, self.num_replicas)

    @property
    def initial_limit(self) -> int | None:
        return None if self.max_num_seqs is None else _INITIAL_BATCHES * self.max_num_seqs


@dataclass(frozen=True, slots=True)
class PoolLoadStats:
    """The load and the limit of a pool, for metrics and the console."""

    num_in_flight: int
    limit: float  # requests in flight
    first_token_p99_ms: float | None  # of the last ten seconds; None: no first tokens
    target_ms: float

    @property
    def is_over_target(self) -> bool:
        return self.first_token_p99_ms is not None and self.first_token_p99_ms > self.target_ms


@dataclass(slots=True)
class _PendingRequest:
    """A request in flight whose first token is not counted yet."""

    trace: RequestTrace
    mode: Mode
    target_s: float
    num_ahead: int  # requests in flight when this one was admitted
    admitted_s: float
    was_reported_late: bool = False  # the limit has counted this request as late


class PoolLoadShedder:
    """The load shedder of one pool.

    All times are monotonic seconds. Waiting times begin at admission: the time that a client took
    to send its request says nothing about the pool.
    """

    def __init__(self, capacity: PoolCapacity, targets_s: Mapping[Mode, float]) -> None:
        self.limit = CubicLimit(floor=capacity.floor, initial=capacity.initial_limit)
        self._max_num_seqs = capacity.max_num_seqs
        self.times: Final = {mode: RollingQuantiles() for mode in Mode}  # of first tokens
        self._targets_s = targets_s
        self._shares = FairShareLimiter()
        self._pending_requests: dict[RequestId, _PendingRequest] = {}
        self._last_check_s = float("-inf")
        self._slot_s = max(_MIN_SLOT_S, min(targets_s.values()))  # length of a time slot
        # The latest time slots with first tokens: (number of the slot, number of first tokens).
        self._first_tokens: deque[tuple[int, int]] = deque(maxlen=_NUM_SLOTS)

    @property
    def num_in_flight(self) -> int:
        return self._shares.num_in_flight

    def set_capacity(self, capacity: PoolCapacity) -> None:
        self.limit.set_bounds(floor=capacity.floor, initial=capacity.initial_limit)
        self._max_num_seqs = capacity.max_num_seqs

    def decide_admission(
        self, request: CompletionRequest, trace: RequestTrace, now_s: float
    ) -> bool:
        """Update the limit, and return whether the pool can accept the request now."""
        self._check_waiting(now_s)
        self.limit.reset(now_s)
        target_s = self._targets_s[request.mode]
        if self._is_predicted_late(target_s, now_s):
            self.limit.on_predicted_late(self.num_in_flight, epoch_s=target_s, now_s=now_s)
        if not self.num_in_flight:
            return True
        trigger = Trigger.PREFETCH if request.is_warm_up else request.trigger
        if trigger is Trigger.PREFETCH and (
            self._is_batch_full() or self._is_over_target(request.mode, now_s)
        ):
            return False
        return self._shares.can_admit(_tenant_id(trace), trigger, self.limit.value)

    def start(self, request: CompletionRequest, trace: RequestTrace, now_s: float) -> None:
        """Count an admitted request as in flight."""
        if not request.is_warm_up:  # warm-ups may be late: they have the lowest priority
            self._pending_requests[trace.arrival.request_id] = _PendingRequest(
                trace=trace,
                mode=request.mode,
                target_s=self._targets_s[request.mode],
                num_ahead=self.num_in_flight,
                admitted_s=now_s,
            )
        self._shares.acquire(_tenant_id(trace))

    def finish(self, trace: RequestTrace, now_s: float, *, was_refused: bool) -> None:
        """Remove a request. `was_refused`: the engine's queue was full."""
        self._shares.release(_tenant_id(trace))
        pending = self._pending_requests.get(trace.arrival.request_id)
        if pending is None:
            return  # a warm-up, or its first token is counted already
        if was_refused and not pending.was_reported_late:
            self._report_first_token(pending, _REFUSED_RATIO, now_s)
        else:
            self._check_request(pending, now_s)
        wait_s = _compute_wait_s(pending, now_s)
        if trace.engine_first_token_s is None and wait_s > pending.target_s:
            # The request left before its first token, so its latency would have been even higher.
            self.times[pending.mode].add(wait_s * 1000, now_s=now_s)
        self._pending_requests.pop(trace.arrival.request_id, None)

    def p99_ms(self, mode: Mode, now_s: float) -> float | None:
        return self.times[mode].quantile(_GUARDED_QUANTILE, now_s=now_s)

    def _is_batch_full(self) -> bool:
        return self._max_num_seqs is not None and self.num_in_flight >= self._max_num_seqs

    def _is_over_target(self, mode: Mode, now_s: float) -> bool:
        if not self.limit.is_queueing:
            return False
        p99_ms = self.p99_ms(mode, now_s)
        return p99_ms is not None and p99_ms > self._targets_s[mode] * 1000

    def _is_predicted_late(self, target_s: float, now_s: float) -> bool:
        """Estimate by Little's law whether the next request would be late.

        It would be late if the oldest request has waited for long, and if more requests wait than
        the pool can answer within `target_s` at its best recent rate.
        """
        oldest = next(iter(self._pending_requests.values()), None)
        if oldest is None or _compute_wait_s(oldest, now_s) < _LONG_WAIT_RATIO * target_s:
            return False
        slot = int(now_s / self._slot_s)
        max_first_tokens = max(
            (count for number, count in self._first_tokens if number > slot - _NUM_SLOTS),
            default=0,
        )
        if max_first_tokens < _MIN_FIRST_TOKENS:
            return False  # too few to know the best rate of the pool
        # The best rate is max_first_tokens / _slot_s, so this says: number / rate > target.
        return len(self._pending_requests) * self._slot_s > max_first_tokens * target_s

    def _count_first_token(self, now_s: float) -> None:
        slot = int(now_s / self._slot_s)
        if not self._first_tokens or self._first_tokens[-1][0] != slot:
            self._first_tokens.append((slot, 0))
        self._first_tokens[-1] = (slot, self._first_tokens[-1][1] + 1)

    def _check_waiting(self, now_s: float) -> None:
        """Record the first tokens that have arrived, and those that are overdue."""
        if now_s - self._last_check_s < _CHECK_INTERVAL_S:
            return
        self._last_check_s = now_s
        for pending in tuple(self._pending_requests.values()):
            self._check_request(pending, now_s)

    def _check_request(self, pending: _PendingRequest, now_s: float) -> None:
        """Record the request's first token if it has arrived, or if it is overdue."""
        trace = pending.trace
        waited_s = _compute_wait_s(pending, now_s)
        if trace.engine_first_token_s is not None:
            self.times[pending.mode].add(waited_s * 1000, now_s=now_s)
            self._count_first_token(now_s)
            del self._pending_requests[trace.arrival.request_id]
        elif waited_s <= pending.target_s:
            return
        if not pending.was_reported_late:
            self._report_first_token(pending, waited_s / pending.target_s, now_s)

    def _report_first_token(self, pending: _PendingRequest, ratio: float, now_s: float) -> None:
        pending.was_reported_late = ratio > 1.0
        self.limit.on_first_token(
            ratio, num_ahead=pending.num_ahead, admitted_s=pending.admitted_s, now_s=now_s
        )


class LoadShedder:
    """The load shedders of all pools. Used on one event loop only."""

    def __init__(
        self,
        clock: Clock,
        *,
        capacities: Mapping[str, PoolCapacity],
        targets_ms: Mapping[Mode, float],
    ) -> None:
        """Create one load shedder per pool.

        `capacities` are by pool name. `targets_ms` are the targets for the p99 of the first token,
        by mode.
        """
        self.num_shed: Counter[tuple[str, Mode, Trigger]] = Counter()  # by pool, mode and trigger
        self._clock = clock
        self._targets_ms = targets_ms
        targets_s = {mode: target_ms / 1000 for mode, target_ms in targets_ms.items()}
        self._pools = {
            name: PoolLoadShedder(capacity, targets_s) for name, capacity in capacities.items()
        }

    def set_capacity(self, pool: str, capacity: PoolCapacity) -> None:
        """Set the capacity of a pool. Limits and latencies that were learnt are kept."""
        self._pools[pool].set_capacity(capacity)

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(self._pools)

    @contextmanager
    def admit(self, pool: str, request: CompletionRequest, trace: RequestTrace) -> Iterator[None]:
        """Count the request as in flight until the block ends.

        Raises CompletionDropped (shed) if the pool cannot accept the request.
        """
        load = self._pools[pool]
        now_s = self._clock.monotonic_s()
        if not load.decide_admission(request, trace, now_s):
            self.num_shed[pool, request.mode, request.trigger] += 1
            raise CompletionDropped(FinishReason.SHED)
        load.start(request, trace, now_s)
        was_refused = False
        try:
            yield
        except EngineError as error:
            was_refused = error.code == "engine_busy"
            raise
        finally:
            load.finish(trace, self._clock.monotonic_s(), was_refused=was_refused)

    def get_stats(self, pool: str, mode: Mode) -> PoolLoadStats:
        load = self._pools[pool]
        return PoolLoadStats(
            num_in_flight=load.num_in_flight,
            limit=load.limit.value,
            first_token_p99_ms=load.p99_ms(mode, self._clock.monotonic_s()),
            target_ms=self._targets_ms[mode],
        )


def _tenant_id(trace: RequestTrace) -> TenantId | None:
    return None if trace.principal is None else trace.principal.snapshot.tenant_id


def _compute_wait_s(pending: _PendingRequest, now_s: float) -> float:
    """Return the seconds from admission until the first token, or until now."""
    trace = pending.trace
    until_s = now_s if trace.engine_first_token_s is None else trace.engine_first_token_s
    return until_s - pending.admitted_s
