"""Estimates for which languages a pool's speculating replicas are useful.

The tracker periodically reads the counters of each engine. The time between two reads is a window.
The tracker counts the tokens that the engine generated in each window for completions of this
gateway, including completions in flight. `acceptance_rate` computes the estimates from the windows.

The other tokens of a window belong to requests of other gateways. This gateway does not know the
languages of these requests, so their tokens count as one more language. The estimates are
inaccurate if the mix of languages at the other gateways changes together with the mix at this
gateway. A window is therefore ignored if more than 60% of its tokens belong to other gateways. With
two gateways under equal load this share is 50%, with three it is 67%.

If the acceptance rate of a language stays low for some minutes, requests in this language go to the
pool's replicas without speculation. If the pool has no such replicas, nothing changes. After a
longer time, the speculating replicas get these requests again. If the rate is still low after some
minutes, the requests go to the replicas without speculation once more.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from caret.foundation.clock import Clock
from inference.completion.request_trace import RequestTrace
from inference.pools.pool_config import PoolConfig, Replica
from inference.pools.speculation.acceptance_rate import (
    FOREIGN,
    AcceptanceEstimate,
    AcceptanceRates,
    AcceptanceWindow,
    RequestKind,
)

MAX_READ_S: Final = 2.0
MIN_WINDOW_TOKENS: Final = 50  # a window with fewer tokens stays open
# An engine and this gateway count the tokens of a window at slightly different times. A difference
# below this share of the engine's tokens is ignored.
MIN_DIFFERENCE_SHARE: Final = 0.2
MAX_FOREIGN_SHARE: Final = 0.6  # of the engine's tokens, for requests of other gateways
# Counters of vLLM.
_GENERATED: Final = "vllm:generation_tokens_total"
_DRAFTED: Final = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED: Final = "vllm:spec_decode_num_accepted_tokens_total"
_DRAFTS: Final = "vllm:spec_decode_num_drafts_total"
_ACCEPTED_AT: Final = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


class SpeculationMetricsReader(Protocol):
    async def read(self, replica: Replica) -> Mapping[str, list[float]] | None:
        """Return the values of each metric by its name; None if the replica does not respond.

        A replica with several engines has one value for each, in the same order for all metrics.
        """


@dataclass(frozen=True, slots=True)
class _Counters:
    """A replica's counters, or their increase. All count tokens, except num_drafts."""

    generated: float
    drafted: float
    accepted: float
    num_drafts: float
    accepted_by_position: tuple[float, ...]  # accepted tokens at each position of a draft

    def increase_since(self, before: "_Counters") -> "_Counters":
        positions = zip(self.accepted_by_position, before.accepted_by_position, strict=False)
        return _Counters(
            self.generated - before.generated,
            self.drafted - before.drafted,
            self.accepted - before.accepted,
            self.num_drafts - before.num_drafts,
            tuple(now - count_before for now, count_before in positions),
        )


@dataclass(slots=True)
class _WatchedReplica:
    replica: Replica
    acceptances: AcceptanceRates  # shared by the replicas of the same pools
    before: _Counters | None = None  # None: not read yet
    # Tokens generated for completions of this gateway since `before`.
    generated: Counter[RequestKind] = field(default_factory=Counter)


@dataclass(slots=True)
class _TrackedCompletion:
    """A completion in flight, and its tokens that were already counted."""

    trace: RequestTrace
    num_counted_tokens: int = 0


class SpeculationTracker:
    """Keeps the estimates for the speculating replicas of all pools.

    In pools without other replicas, the estimates are only for metrics and an alert.
    """

    def __init__(
        self,
        pools: PoolConfig,
        reader: SpeculationMetricsReader,
        clock: Clock,
        *,
        fallback_after_s: float,
        retry_after_s: float,
    ) -> None:
        """`fallback_after_s`: a language uses the fallback after a low rate for this time.

        `retry_after_s`: speculating replicas are used again after the fallback was used for this
        time, or earlier if the rate is no longer low or no longer known.
        """
        self._reader = reader
        self._fallback_after_s = fallback_after_s
        self._retry_after_s = retry_after_s
        self._clock = clock
        self._last_poll_s = clock.monotonic_s()
        self._groups: dict[tuple[str, ...], AcceptanceRates] = {}  # by the names of pools
        self._pools = pools
        self._watched_replicas: dict[str, _WatchedReplica] = {}  # by name
        self._sync_replicas()
        self._in_flight: dict[int, _TrackedCompletion] = {}  # by the identity of the request trace
        self._estimates: dict[RequestKind, AcceptanceEstimate] = {}
        self._low_since_s: dict[RequestKind, float] = {}  # monotonic seconds

    @property
    def estimates(self) -> dict[tuple[str, str], AcceptanceEstimate]:
        """The estimates by pool and language."""
        return {_split_kind(kind): estimate for kind, estimate in self._estimates.items()}

    def is_profitable(self, pool: str, language: str) -> bool:
        """Return whether the language may use speculating replicas. True without an estimate.

        `pool` is the name of a pool.
        """
        low_since_s = self._low_since_s.get(_to_kind(pool, language))
        if low_since_s is None:
            return True
        return self._clock.monotonic_s() - low_since_s < self._fallback_after_s

    def is_using_fallback(self, pool: str, language: str) -> bool:
        """Return whether the language uses only the pool's replicas without speculation."""
        replicas = self._pools.by_name[pool].replicas
        has_fallback = any(replica.speculation is None for replica in replicas)
        return has_fallback and not self.is_profitable(pool, language)

    def on_started(self, trace: RequestTrace) -> None:
        if self._watched_replicas:
            self._in_flight[id(trace)] = _TrackedCompletion(trace)

    def on_completed(self, trace: RequestTrace) -> None:
        completion = self._in_flight.pop(id(trace), None)
        if completion is not None:
            self._count_tokens(completion)

    def _count_tokens(self, completion: _TrackedCompletion) -> None:
        """Count the completion's tokens that were generated since the last call."""
        trace = completion.trace
        watched_replica = self._watched_replicas.get(trace.replica)
        num_new_tokens = trace.generated_tokens - completion.num_counted_tokens
        if watched_replica is not None and trace.request is not None and num_new_tokens:
            watched_replica.generated[_to_kind(trace.pool, trace.request.language)] += (
                num_new_tokens
            )
            completion.num_counted_tokens = trace.generated_tokens

    async def run(self, *, every_s: float) -> None:
        """Read the counters periodically until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            await self.poll()

    def _sync_replicas(self) -> None:
        """Apply changes of the pools' replicas. Estimates are kept."""
        speculating = _find_speculating_replicas(self._pools)
        self._watched_replicas = {
            replica.name: self._watched_replicas.get(replica.name)
            or _WatchedReplica(replica, self._groups.setdefault(names, AcceptanceRates()))
            for replica, names in speculating.items()
        }

    async def poll(self) -> None:
        """Read the counters of all replicas once, and update the estimates."""
        self._sync_replicas()
        now_s = self._clock.monotonic_s()
        for acceptances in self._groups.values():
            acceptances.decay(now_s - self._last_poll_s)
        self._last_poll_s = now_s
        async with asyncio.TaskGroup() as group:
            for watched_replica in self._watched_replicas.values():
                group.create_task(self._poll_replica(watched_replica))
        self._estimates = {
            kind: estimate
            for acceptances in self._groups.values()
            for kind, estimate in acceptances.estimates().items()
        }
        self._low_since_s = {
            kind: self._find_low_since_s(kind, now_s)
            for kind, estimate in self._estimates.items()
            if estimate.is_low
        }

    def _find_low_since_s(self, kind: RequestKind, now_s: float) -> float:
        """Return the time since which the rate is low.

        If speculating replicas are due to be used again, return the current time: the rate must
        then stay low for `fallback_after_s` before the language uses the fallback again.
        """
        low_since_s = self._low_since_s.get(kind, now_s)
        is_retry_due = now_s - low_since_s >= self._fallback_after_s + self._retry_after_s
        return now_s if is_retry_due else low_since_s

    async def _poll_replica(self, watched_replica: _WatchedReplica) -> None:
        try:
            async with asyncio.timeout(MAX_READ_S):
                values = await self._reader.read(watched_replica.replica)
        except TimeoutError:
            return
        if values is not None and all(name in values for name in (_GENERATED, _DRAFTED, _ACCEPTED)):
            counters = _read_counters(values)
            # A completion may last as long as a window. If all its tokens were counted at its end,
            # some would count in the wrong window, and both windows could be ignored.
            for completion in self._in_flight.values():
                self._count_tokens(completion)
            _close_window(watched_replica, counters)


def _read_counters(values: Mapping[str, list[float]]) -> _Counters:
    """Return the sums over the replica's engines.

    The metric by position has the values of all positions of the first engine, then of the next.
    """
    num_engines = len(values[_GENERATED])
    accepted_at = values.get(_ACCEPTED_AT, [])
    num_positions = len(accepted_at) // num_engines
    return _Counters(
        generated=sum(values[_GENERATED]),
        drafted=sum(values[_DRAFTED]),
        accepted=sum(values[_ACCEPTED]),
        num_drafts=sum(values.get(_DRAFTS, [])),
        accepted_by_position=tuple(
            sum(accepted_at[position::num_positions]) for position in range(num_positions)
        ),
    )


def _close_window(watched_replica: _WatchedReplica, current: _Counters) -> None:
    """Close the window, and use it for the estimates. A window with too few tokens stays open."""
    before = watched_replica.before
    difference = current.increase_since(before) if before is not None else None
    if difference is not None and 0 <= difference.generated < MIN_WINDOW_TOKENS:
        return
    generated, watched_replica.generated = watched_replica.generated, Counter()
    watched_replica.before = current
    if difference is None:  # the first read
        return
    num_foreign_tokens = round(difference.generated) - generated.total()
    min_difference = MIN_DIFFERENCE_SHARE * difference.generated
    # This gateway has counted many more tokens than the engine. So the engine has restarted, and
    # its counters have begun at 0 again.
    if num_foreign_tokens < -min_difference:
        return
    # Too many tokens of unknown languages (see the module's docstring).
    if num_foreign_tokens > MAX_FOREIGN_SHARE * difference.generated:
        return
    if num_foreign_tokens > min_difference:
        generated[FOREIGN] = num_foreign_tokens
    watched_replica.acceptances.add(
        AcceptanceWindow(
            generated,
            difference.drafted,
            difference.accepted,
            difference.num_drafts,
            difference.accepted_by_position,
        )
    )


def _find_speculating_replicas(pools: PoolConfig) -> dict[Replica, tuple[str, ...]]:
    """Return each speculating replica with the names of its pools."""
    all_pools = tuple(pools.by_name.values())
    return {
        replica: tuple(sorted(pool.name for pool in all_pools if replica in pool.replicas))
        for pool in all_pools
        for replica in pool.replicas
        if replica.speculation is not None
    }


def _to_kind(pool: str, language: str) -> RequestKind:
    return RequestKind(f"{pool}\0{language}")


def _split_kind(kind: RequestKind) -> tuple[str, str]:
    pool, _, language = kind.partition("\0")
    return pool, language
