"""Leases: units of the buckets that all gateways share, taken many at a time and spent from memory.

Most requests spend what is here; one that finds too little waits for one call of the store, and
what is half spent is renewed behind the requests' backs. Rules:

1. All buckets of a request are spent or none.
2. A bucket is asked about by one call at a time; whoever needs it meanwhile waits for that call.
3. A refusal holds until the store has said that a unit will be back: hammering costs it nothing.
4. Nobody waits longer than MAX_WAIT_S. A store that is away is asked again every PROBE_S, in the
   background; until it answers each bucket is kept to its rate by this gateway alone, and what
   never comes back (budgets) is spent as a debt that is booked afterwards, as large as its rule
   allows.
5. What lies unused is given back; MAX_BUCKETS are remembered, the latest used.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from caret.foundation.clock import Clock
from inference.gateway.bucket import IDLE_S, Bucket, Rule

MAX_WAIT_S: Final = 0.05  # of a request, for the store
MAX_CALL_S: Final = 0.5  # of the store
PROBE_S: Final = 0.5
SWEEP_S: Final = 2.0
MAX_BUCKETS: Final = 50_000  # of about 500 bytes
_KEYS_PER_CALL: Final = 50
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Want:
    rule: Rule
    units: int  # of a request at least 1; below 0: to be given back


@dataclass(frozen=True, slots=True)
class Grant:
    units: int  # at most what was wanted
    wait_s: float  # until one more unit could be had


@dataclass(frozen=True, slots=True)
class Spent:
    """What `take` has spent of one bucket."""

    bucket: Bucket
    units: int
    is_leased: bool  # False: the store was away


class OverLimit(Exception):
    """A bucket has too little."""

    def __init__(self, rule: Rule, wait_s: float) -> None:
        super().__init__(rule.key)
        self.rule: Final = rule
        self.wait_s: Final = wait_s


class Store(Protocol):
    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        """One call, of one holder's buckets. Raises OSError when the store is away."""


class Leases:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        max_buckets: int = MAX_BUCKETS,
        max_wait_s: float = MAX_WAIT_S,
    ) -> None:
        self._max_wait_s = max_wait_s
        self._max_call_s = max(MAX_CALL_S, max_wait_s)
        self._store = store
        self._clock = clock
        self._max_buckets = max_buckets
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()  # by key, the latest used last
        self._returns: defaultdict[str, list[Want]] = defaultdict(list)  # by holder
        self._tasks: set[asyncio.Task[None]] = set()
        self._probe_at_s: float | None = None  # None: the store answers

    @property
    def is_alone(self) -> bool:
        """Whether the store is away."""
        return self._probe_at_s is not None

    @property
    def num_buckets(self) -> int:
        return len(self._buckets)

    async def take(self, wants: Sequence[Want]) -> list[Spent]:
        """Spends them all, or raises OverLimit for the one that takes longest.

        May wait MAX_WAIT_S for the store. Cancelled there, it has spent nothing.
        """
        pairs = [(self._bucket(want.rule), want.units) for want in wants]
        deadline_s = self._clock.monotonic_s() + self._max_wait_s
        while short := [(bucket, units) for bucket, units in pairs if bucket.left < units]:
            now_s = self._clock.monotonic_s()
            if self.is_alone or now_s >= deadline_s:
                self._probe(pairs, now_s)
                _check_alone(short, now_s)
                break
            _check_refusals(short, now_s)
            await self._renewed(pairs, short)
        spent = self._spend(pairs)
        if not self.is_alone:
            self._renew([bucket for bucket, _ in pairs if bucket.left < bucket.size // 2])
        return spent

    def give_back(self, spent: Spent, units: int) -> None:
        """So many of its units were not needed; below 0: more were needed."""
        bucket, now_s = spent.bucket, self._clock.monotonic_s()
        if self._buckets.get(bucket.rule.key) is bucket:
            bucket.spend(-units, now_s, is_leased=spent.is_leased)
        elif spent.is_leased or bucket.rule.interval_s is None:  # forgotten meanwhile
            self._returns[bucket.rule.holder].append(Want(bucket.rule, -units))

    async def run(self) -> None:
        """Gives back what lies unused, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.sweep()

    async def sweep(self) -> None:
        now_s = self._clock.monotonic_s()
        for bucket in [b for b in self._buckets.values() if now_s - b.used_s > IDLE_S]:
            self._let_go(bucket, now_s)
        await self._return()

    async def close(self) -> None:
        """Gives back all that is left, if the store takes it at once."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for bucket in self._buckets.values():
            self._queue_return(bucket)
        self._buckets.clear()
        await self._return()

    def _bucket(self, rule: Rule) -> Bucket:
        now_s = self._clock.monotonic_s()
        bucket = self._buckets.get(rule.key)
        if bucket is None:
            if len(self._buckets) >= self._max_buckets:
                self._queue_return(self._buckets.popitem(last=False)[1])
            bucket = self._buckets[rule.key] = Bucket(rule, size=rule.lease, used_s=now_s)
        elif bucket.rule is not rule and bucket.rule != rule:
            bucket.follow(rule, now_s)
        bucket.used_s = now_s
        self._buckets.move_to_end(rule.key)
        return bucket

    def _let_go(self, bucket: Bucket, now_s: float) -> None:
        """Debts wait for the store; its own count stays while it would hold somebody up."""
        if bucket.renewal is not None or (self.is_alone and bucket.left < 0):
            return
        self._queue_return(bucket)
        if bucket.alone.full_at_s <= now_s:
            del self._buckets[bucket.rule.key]

    def _queue_return(self, bucket: Bucket) -> None:
        if bucket.left:
            self._returns[bucket.rule.holder].append(Want(bucket.rule, -bucket.left))
            bucket.left = 0

    def _spend(self, pairs: Sequence[tuple[Bucket, int]]) -> list[Spent]:
        now_s = self._clock.monotonic_s()
        spent = [Spent(bucket, units, bucket.left >= units) for bucket, units in pairs]
        for one in spent:
            one.bucket.spend(one.units, now_s, is_leased=one.is_leased)
        return spent

    async def _renewed(
        self, pairs: Sequence[tuple[Bucket, int]], short: Sequence[tuple[Bucket, int]]
    ) -> None:
        """Waits for the store's answer about the buckets that have too little."""
        for bucket, units in short:
            bucket.wanted += units
        try:
            self._renew([b for b, units in pairs if b.left - units < b.size // 2])
            waited_for = {bucket.renewal for bucket, _ in short if bucket.renewal is not None}
            _, pending = await asyncio.wait(waited_for, timeout=self._max_wait_s)
        finally:
            for bucket, units in short:
                bucket.wanted -= units
        if pending:
            self._is_away("TimeoutError")

    def _renew(self, buckets: Sequence[Bucket]) -> None:
        now_s = self._clock.monotonic_s()
        due = [b for b in buckets if b.renewal is None and b.refused_until_s <= now_s]
        if not due:
            return
        task = asyncio.create_task(self._ask(due))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for bucket in due:
            bucket.renewal = task

    async def _ask(self, buckets: Sequence[Bucket]) -> None:
        """Cancelled in the call, what it was granted is lost until it comes back by itself."""
        try:
            now_s = self._clock.monotonic_s()
            for bucket in buckets:
                bucket.resize(now_s)
            wants = [Want(bucket.rule, bucket.next_lease()) for bucket in buckets]
            async with asyncio.timeout(self._max_call_s):
                grants = await self._store.take(wants)
        except (OSError, TimeoutError) as error:
            self._is_away(type(error).__name__)
        else:
            self._probe_at_s = None
            for bucket, want, grant in zip(buckets, wants, grants, strict=True):
                self._granted(bucket, want, grant)
        finally:
            for bucket in buckets:
                bucket.renewal = None

    def _granted(self, bucket: Bucket, want: Want, grant: Grant) -> None:
        bucket.left += grant.units
        if grant.units < want.units:
            bucket.refused_until_s = self._clock.monotonic_s() + grant.wait_s

    def _is_away(self, error: str) -> None:
        if not self.is_alone:
            log.warning("limits.alone", error=error)
        self._probe_at_s = self._clock.monotonic_s() + PROBE_S

    def _probe(self, pairs: Sequence[tuple[Bucket, int]], now_s: float) -> None:
        if self._probe_at_s is not None and now_s >= self._probe_at_s:
            self._probe_at_s = now_s + PROBE_S
            self._renew([bucket for bucket, _ in pairs])

    async def _return(self) -> None:
        """A store that is away keeps what it lent: rates come back by themselves."""
        try:
            async with asyncio.timeout(self._max_call_s):
                while self._returns:
                    _, wants = self._returns.popitem()
                    for start in range(0, len(wants), _KEYS_PER_CALL):
                        await self._store.take(wants[start : start + _KEYS_PER_CALL])
        except (OSError, TimeoutError) as error:
            log.warning("limits.not_returned", error=type(error).__name__)
            self._returns.clear()


def _check_refusals(short: Sequence[tuple[Bucket, int]], now_s: float) -> None:
    """Raises OverLimit where the store has said no."""
    refused = [(bucket, units) for bucket, units in short if bucket.refused_until_s > now_s]
    _raise_longest([(b, b.refused_wait_s(units, now_s)) for b, units in refused])


def _check_alone(short: Sequence[tuple[Bucket, int]], now_s: float) -> None:
    """Raises OverLimit where this gateway's own count says no."""
    _raise_longest([(bucket, bucket.alone_wait_s(units, now_s)) for bucket, units in short])


def _raise_longest(waits: Sequence[tuple[Bucket, float]]) -> None:
    bucket, wait_s = max(waits, key=lambda wait: wait[1], default=(None, 0.0))
    if bucket is not None and wait_s > 0:
        raise OverLimit(bucket.rule, wait_s)
