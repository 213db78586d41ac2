"""A queueing model of a pool in simulated time.

Requests arrive at random (Poisson). Each replica serves first tokens one after the other, in
log-normal times. Decoding continues in parallel. The real PoolLoadShedder admits requests.
"""

import heapq
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.policy import Mode, Trigger
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.gateway.load_shedding.load_shedder import PoolCapacity, PoolLoadShedder
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_request, make_trace

TARGET_S: Final = 0.08


@dataclass(frozen=True, slots=True)
class OfferedRequest:
    at_s: float
    trigger: Trigger
    first_token_s: float | None  # None: shed
    tenant: Principal | None = None


@dataclass(slots=True)
class QueueModel:
    rate: Callable[[float], float]  # from a time in seconds to requests per second
    num_replicas: int = 2
    service_s: float = 0.02  # median of the service times
    target_s: float = TARGET_S
    decode_s: float = 0.05
    spread: float = 0.3  # standard deviation of the logarithm of service times
    triggers: Sequence[Trigger] = (Trigger.AUTOMATIC,)
    # One is drawn for each request. List a tenant twice to double its share.
    tenants: Sequence[Principal] = ()
    seed: int = 1
    now_s: float = 0.0
    offered: list[OfferedRequest] = field(default_factory=list)
    load_shedder: PoolLoadShedder = field(init=False)
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _num_events: int = 0
    _free_s: list[float] = field(init=False)  # when each replica becomes free
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        targets = dict.fromkeys(Mode, self.target_s)
        self.load_shedder = PoolLoadShedder(PoolCapacity(self.num_replicas), targets)
        self._free_s = [0.0] * self.num_replicas
        self._random = random.Random(self.seed)

    @property
    def capacity(self) -> float:
        """Return how many requests a second all replicas serve, by the median service time.

        The mean service time is 4.6% longer (spread 0.3), so in the long run they serve fewer.
        """
        return self.num_replicas / self.service_s

    def run(self, until_s: float) -> None:
        """Simulate until that time; a later call continues."""
        if not self._events:
            self._schedule(self.now_s, self._arrive)
        while self._events and self.now_s < until_s:
            self.now_s, _, action = heapq.heappop(self._events)
            action()

    def between(self, start_s: float, end_s: float) -> list[OfferedRequest]:
        return [request for request in self.offered if start_s <= request.at_s < end_s]

    def _arrive(self) -> None:
        self._schedule(self.now_s + self._random.expovariate(self.rate(self.now_s)), self._arrive)
        request = make_request(trigger=self._random.choice(self.triggers))
        tenant = self._random.choice(self.tenants) if self.tenants else None
        trace = make_trace(FakeClock(monotonic_s=self.now_s))
        trace.principal = tenant
        if not self.load_shedder.decide_admission(request, trace, self.now_s):
            self.offered.append(OfferedRequest(self.now_s, request.trigger, None, tenant))
            return
        self.load_shedder.start(request, trace, self.now_s)
        # The replica that becomes free first.
        replica = min(range(self.num_replicas), key=self._free_s.__getitem__)
        service_s = self._random.lognormvariate(0.0, self.spread) * self.service_s
        first_token_at_s = max(self._free_s[replica], self.now_s) + service_s
        self._free_s[replica] = first_token_at_s
        self.offered.append(
            OfferedRequest(self.now_s, request.trigger, first_token_at_s - self.now_s, tenant)
        )
        self._schedule(first_token_at_s, lambda: self._emit_first_token(trace))

    def _emit_first_token(self, trace: RequestTrace) -> None:
        trace.engine_first_token_s = self.now_s
        self._schedule(
            self.now_s + self.decode_s,
            lambda: self.load_shedder.finish(trace, self.now_s, was_refused=False),
        )

    def _schedule(self, when_s: float, action: Callable[[], None]) -> None:
        self._num_events += 1  # orders events of the same time
        heapq.heappush(self._events, (when_s, self._num_events, action))


def shed_share(offered_requests: Iterable[OfferedRequest]) -> float:
    shed = [request.first_token_s is None for request in offered_requests]
    return sum(shed) / len(shed)


def first_tokens_s(offered_requests: Iterable[OfferedRequest]) -> list[float]:
    return sorted(
        request.first_token_s for request in offered_requests if request.first_token_s is not None
    )


def quantile(times: Sequence[float], share: float) -> float:
    """Return the quantile of times that are sorted."""
    return times[min(len(times) - 1, int(share * len(times)))]
