"""Leases: units of shared buckets, acquired in batches and spent from memory.

Most requests spend leased units. A request that finds too few units waits for one call to the
store. A half-spent lease is renewed in the background. Rules:

1. A request spends from all its buckets or from none.
2. There is at most one call for a bucket at a time. Requests that need more units wait for it.
3. A refusal is valid until the time that the store named. A client that repeats refused requests
   causes no calls to the store, and does not keep a lease in use.
4. No request waits longer than MAX_WAIT_S. While the store does not answer, requests call it at
   most every PROBE_S. Until the store answers, this gateway enforces each rate alone. It may
   overspend each budget by the debt that the budget's specification allows. The overspent units
   are counted afterwards.
5. A call states the whole lease, so it repairs the effects of an earlier call that was lost, late
   or repeated (see `LeaseRequest`). A gateway repeats the return of surplus units until the store
   confirms it.
6. An unused lease is returned. At most MAX_BUCKETS are kept, the most recently used.
"""

import asyncio
import secrets
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Final, Protocol, TypeVar

import structlog

from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.gateway.rate_limits.leased_bucket import (
    IDLE_S,
    BucketSpec,
    LeasedBucket,
    LeaseGrant,
    LeaseRequest,
)

MAX_WAIT_S: Final = 0.05  # the wait of one request for the store
MAX_CALL_S: Final = 0.5  # timeout of a call to the store
PROBE_S: Final = 0.5  # between two calls by requests to a store that does not answer
SWEEP_S: Final = 2.0  # between two returns of idle leases
CLOSE_S: Final = 2.0  # for returning all leases at shutdown
MAX_BUCKETS: Final = 50_000  # of about 600 bytes each
_BUCKETS_PER_CALL: Final = 50  # when returning leases
_CALLS_AT_ONCE: Final = 16  # when returning leases
_Item = TypeVar("_Item")
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SpendRequest:
    """The units that a completion needs from one bucket."""

    spec: BucketSpec
    units: int  # at least 1


@dataclass(frozen=True, slots=True)
class Charge:
    """The units spent from one bucket. Settle each charge once."""

    bucket: LeasedBucket
    units: int
    is_leased: bool  # False: the store did not answer in time


class RateLimitExceeded(Exception):
    """A bucket has too few units."""

    def __init__(self, spec: BucketSpec, wait_s: float) -> None:
        super().__init__(spec.key)
        self.spec: Final = spec
        self.wait_s: Final = wait_s  # until the bucket has enough units, or until the next attempt


class LeaseStore(Protocol):
    async def renew(self, gateway: str, requests: Sequence[LeaseRequest]) -> list[LeaseGrant]:
        """Make one call about the buckets of one tenant. Return a grant for each request, in order.

        Raises OSError.
        """


class Leases:
    def __init__(
        self,
        store: LeaseStore,
        clock: Clock,
        *,
        max_buckets: int = MAX_BUCKETS,
        max_wait_s: float = MAX_WAIT_S,
    ) -> None:
        self.num_calls: Final[Counter[str]] = Counter()  # by result: answered, failed
        # At the last sweep: granted units by kind of bucket, and the number of buckets whose last
        # call was not answered.
        self.num_granted_units: Counter[str] = Counter()
        self.num_unanswered = 0
        self._max_wait_s = max_wait_s
        self._max_call_s = max(MAX_CALL_S, max_wait_s)
        self._store = store
        self._clock = clock
        self._gateway = secrets.token_hex(8)
        self._numbers = count(1)
        self._max_buckets = max_buckets
        # By the bucket's key, the most recently used last.
        self._buckets: OrderedDict[str, LeasedBucket] = OrderedDict()
        # Buckets that were evicted but not returned yet; also at most `max_buckets`.
        self._leaving: OrderedDict[str, LeasedBucket] = OrderedDict()
        self._tasks: set[asyncio.Task[bool]] = set()
        self._probe_at_s: float | None = None  # None: the store answers

    @property
    def is_store_unavailable(self) -> bool:
        """True if the last call failed, or a request has waited too long for the store."""
        return self._probe_at_s is not None

    @property
    def num_buckets(self) -> int:
        return len(self._buckets) + len(self._leaving)

    async def spend(self, requests: Sequence[SpendRequest]) -> list[Charge]:
        """Spend the units of all the requests, or of none.

        May wait MAX_WAIT_S for the store. If the task is cancelled while it waits, nothing is
        spent. Raises RateLimitExceeded with the bucket that has the longest wait.
        """
        now_s = self._clock.monotonic_s()
        pairs = [
            (self._get_or_create_bucket(request.spec, now_s), request.units) for request in requests
        ]
        deadline_s = now_s + self._max_wait_s
        while short_buckets := [
            (bucket, units) for bucket, units in pairs if bucket.remaining_units(now_s) < units
        ]:
            if self.is_store_unavailable or now_s >= deadline_s:
                self._probe_if_due(pairs, now_s)
                _check_alone(short_buckets, now_s)
                break
            _check_refusals(short_buckets, now_s)
            await self._wait_for_renewal(pairs, short_buckets, timeout_s=deadline_s - now_s)
            now_s = self._clock.monotonic_s()
        charges = [
            Charge(bucket, units, is_leased=bucket.remaining_units(now_s) >= units)
            for bucket, units in pairs
        ]
        for charge in charges:
            charge.bucket.spend(charge.units, now_s, is_leased=charge.is_leased)
        if not self.is_store_unavailable:
            self._start_call([bucket for bucket, _ in pairs if bucket.is_due(now_s)])
        return charges

    def settle(self, charge: Charge, used_units: int) -> None:
        """Replace the charge's units by the units that were used, which may be fewer or more."""
        now_s, bucket = self._clock.monotonic_s(), charge.bucket
        bucket.settle(charge.units, used_units, now_s, is_leased=charge.is_leased)
        key = bucket.spec.key
        current_bucket = self._buckets.get(key) or self._leaving.setdefault(key, bucket)
        if current_bucket is not bucket:  # the bucket was forgotten and created again
            current_bucket.spent_since += bucket.spent_since
            bucket.spent_since = 0

    async def run(self) -> None:
        """Return unused units until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.evict_idle()

    async def evict_idle(self) -> None:
        """Return idle leases, forget unused buckets, and update the numbers for metrics."""
        now_s = self._clock.monotonic_s()
        swept_buckets: list[LeasedBucket] = []
        self.num_granted_units, self.num_unanswered = Counter(), 0
        for bucket in [*self._buckets.values(), *self._leaving.values()]:
            self.num_granted_units[bucket.spec.kind] += bucket.granted_units
            self.num_unanswered += not bucket.is_answered and bucket.renewal is None
            if bucket.needs_sweep(now_s):
                swept_buckets.append(bucket)
            elif _is_forgettable(bucket, now_s):
                self._remove(bucket)
        await self._return_units(swept_buckets)

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Return all units, within `timeout_s`. After that, the leases expire in the store."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for bucket in self._all_buckets():
            bucket.renewal = None  # a task that was cancelled before it ran has not cleared this
        try:
            async with asyncio.timeout(timeout_s):
                while not_returned := [
                    bucket for bucket in self._all_buckets() if not bucket.is_returned
                ]:
                    if not await self._return_units(not_returned):
                        await asyncio.sleep(self._max_wait_s)
        except TimeoutError:
            log.warning("rate_limits.refund_failed", buckets=len(not_returned))
        self._buckets.clear()
        self._leaving.clear()

    def _all_buckets(self) -> Iterable[LeasedBucket]:
        return chain(self._buckets.values(), self._leaving.values())

    def _get_or_create_bucket(self, spec: BucketSpec, now_s: float) -> LeasedBucket:
        bucket = self._buckets.get(spec.key)
        if bucket is None:
            bucket = self._leaving.pop(spec.key, None) or LeasedBucket(
                spec, size=spec.lease, used_s=now_s, since=next(self._numbers)
            )
            self._buckets[spec.key] = bucket
            self._evict()
        if bucket.spec is not spec and bucket.spec != spec:
            bucket.apply_spec(spec)
        self._buckets.move_to_end(spec.key)
        return bucket

    def _evict(self) -> None:
        """Evict the least recently used bucket if there are too many.

        If the return of its lease fails, the lease expires in the store.
        """
        if len(self._buckets) <= self._max_buckets:
            return
        key, bucket = self._buckets.popitem(last=False)
        if bucket.is_returned and not bucket.reserved:
            return
        bucket.used_s = float("-inf")  # so that sweeps return it if the call is not answered
        self._leaving[key] = bucket
        if len(self._leaving) > self._max_buckets:
            self._leaving.popitem(last=False)
        if bucket.renewal is None and not self.is_store_unavailable:
            self._start_call([bucket], is_return=True)

    def _remove(self, bucket: LeasedBucket) -> None:
        self._buckets.pop(bucket.spec.key, None)
        self._leaving.pop(bucket.spec.key, None)

    async def _wait_for_renewal(
        self,
        pairs: Sequence[tuple[LeasedBucket, int]],
        short: Sequence[tuple[LeasedBucket, int]],
        *,
        timeout_s: float,
    ) -> None:
        """Wait for the store's answer about the buckets with too few units."""
        now_s = self._clock.monotonic_s()
        for bucket, units in short:
            bucket.waiting_units.append(units)
        try:
            self._start_call([bucket for bucket, units in pairs if bucket.is_due(now_s, units)])
            waited_for = {bucket.renewal for bucket, _ in short if bucket.renewal is not None}
            _, pending = await asyncio.wait(waited_for, timeout=timeout_s)
        finally:
            for bucket, units in short:
                bucket.waiting_units.remove(units)
        if pending:
            self._on_store_unavailable("TimeoutError")

    def _start_call(self, buckets: Sequence[LeasedBucket], *, is_return: bool = False) -> None:
        """Start a call about the buckets in the background."""
        if not buckets:
            return
        task = asyncio.create_task(self._call_store(buckets, is_return=is_return))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for bucket in buckets:
            bucket.renewal = task

    async def _call_store(self, buckets: Sequence[LeasedBucket], *, is_return: bool) -> bool:
        """Call the store about the buckets, and return whether it answered.

        A call that was cancelled or timed out may still have had effects. The next call about the
        bucket repairs them.
        """
        now_s = self._clock.monotonic_s()
        try:
            requests = [
                bucket.make_request(next(self._numbers), now_s, is_return=is_return)
                for bucket in buckets
            ]
            async with asyncio.timeout(self._max_call_s):
                grants = await self._store.renew(self._gateway, requests)
        except (OSError, TimeoutError) as error:
            self.num_calls["failed"] += 1
            self._on_store_unavailable(type(error).__name__)
            return False
        finally:
            for bucket in buckets:
                bucket.renewal = None
        self.num_calls["answered"] += 1
        self._probe_at_s = None
        now_s = self._clock.monotonic_s()
        for bucket, request, grant in zip(buckets, requests, grants, strict=True):
            bucket.on_answered(request, grant, now_s)
        return True

    def _on_store_unavailable(self, error: str) -> None:
        if not self.is_store_unavailable:
            log.warning("rate_limits.store_unavailable", error=error)
        self._probe_at_s = self._clock.monotonic_s() + PROBE_S

    def _probe_if_due(self, pairs: Sequence[tuple[LeasedBucket, int]], now_s: float) -> None:
        if self._probe_at_s is not None and now_s >= self._probe_at_s:
            self._probe_at_s = now_s + PROBE_S
            self._start_call([bucket for bucket, units in pairs if bucket.is_due(now_s, units)])

    async def _return_units(self, buckets: Iterable[LeasedBucket]) -> bool:
        """Return the spare units of the buckets, and return whether the store answered all calls.

        Stops after concurrent calls of which none is answered.
        """
        by_tenant: defaultdict[TenantId, list[LeasedBucket]] = defaultdict(list)
        for bucket in buckets:
            by_tenant[bucket.spec.tenant_id].append(bucket)
        calls = [
            call
            for tenant_buckets in by_tenant.values()
            for call in _split_into_parts(tenant_buckets, _BUCKETS_PER_CALL)
        ]
        are_all_answered = True
        for concurrent_calls in _split_into_parts(calls, _CALLS_AT_ONCE):
            are_answered = await asyncio.gather(*map(self._return_batch, concurrent_calls))
            are_all_answered = are_all_answered and all(are_answered)
            if not any(are_answered):
                break
        return are_all_answered

    async def _return_batch(self, buckets: Sequence[LeasedBucket]) -> bool:
        """Return the spare units of the buckets, except those with a call in progress.

        Return whether the store answered.
        """
        free = [bucket for bucket in buckets if bucket.renewal is None]
        self._start_call(free, is_return=True)
        task = free[0].renewal if free else None  # one call for all of them
        return True if task is None else await asyncio.shield(task)


def _split_into_parts(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _is_forgettable(bucket: LeasedBucket, now_s: float) -> bool:
    """Return whether the bucket can be removed without loss.

    It holds no units, its last refusal is over, and its own count (`fallback`) is full again.
    """
    if (
        bucket.renewal is not None
        or not bucket.is_returned
        or bucket.reserved
        or bucket.overdrawn_units
    ):
        return False
    is_unused = now_s - bucket.used_s > IDLE_S and bucket.denied_until_s <= now_s
    return is_unused and bucket.fallback.full_at_s <= now_s


def _check_refusals(short: Sequence[tuple[LeasedBucket, int]], now_s: float) -> None:
    """Raise RateLimitExceeded if the store has refused the units of one of the buckets."""
    refused_buckets = [(bucket, units) for bucket, units in short if bucket.denied_until_s > now_s]
    _raise_longest([(b, b.denied_wait_s(units, now_s)) for b, units in refused_buckets])


def _check_alone(short: Sequence[tuple[LeasedBucket, int]], now_s: float) -> None:
    """Raise RateLimitExceeded if this gateway's own count refuses the units of a bucket."""
    _raise_longest([(bucket, bucket.fallback_wait_s(units, now_s)) for bucket, units in short])


def _raise_longest(waits: Sequence[tuple[LeasedBucket, float]]) -> None:
    bucket, wait_s = max(waits, key=lambda wait: wait[1], default=(None, 0.0))
    if bucket is not None and wait_s > 0:
        raise RateLimitExceeded(bucket.spec, wait_s)
