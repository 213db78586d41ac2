"""Leases on an unreliable network, in virtual time: calls are late, lost, repeated or reordered.

The bound is the number of units that all gateways may hold at the same time. No budget is exceeded
by more than the bound and the debts of the gateways, no request is rejected while more than the
bound is left, and no unit is lost.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from caret.foundation.ids import TenantId
from inference.gateway.rate_limits.leased_bucket import (
    IDLE_S,
    LEASE_S,
    BucketSpec,
    LeaseGrant,
    LeaseRequest,
)
from inference.gateway.rate_limits.leases import SWEEP_S, Leases, RateLimitExceeded, SpendRequest
from tests.fakes.leases import FakeLeaseStore
from tests.fakes.virtual_time import VirtualClock, run_in_virtual_time
from tests.stack.seed import scaled

MAX_UNITS: Final = 60  # of a request
MAX_LEASE: Final = 100
MAX_DEBT: Final = 80
BUDGET: Final = BucketSpec(
    kind="tokens",
    tenant_id=TenantId("acme"),
    key="caret:token-quota:{acme}",
    capacity=2_000,
    interval_s=None,
    lease=10,
    max_lease=MAX_LEASE,
    max_debt=MAX_DEBT,
)
INTERVAL_S: Final = 0.1
RATE: Final = replace(
    BUDGET, kind="user", key="caret:rate:{acme}", interval_s=INTERVAL_S, capacity=400
)


TIMELY_S: Final = 0.001  # until a call or its response arrives
TOO_LATE_S: Final = 0.6  # more than MAX_CALL_S
MAX_DELAY_S: Final = 120.0


@dataclass(frozen=True)
class NetworkQuality:
    """The shares of the calls that fail in different ways."""

    slow: float = 0.0  # answered too late, after TOO_LATE_S
    lost: float = 0.0  # never arrive
    without_response: float = 0.0  # arrive, but their responses do not
    repeated: float = 0.0  # arrive once more, up to MAX_DELAY_S later
    delayed: float = 0.0  # arrive up to MAX_DELAY_S later


CALM: Final = NetworkQuality()
SLOW: Final = NetworkQuality(slow=0.06)
REPEATED: Final = NetworkQuality(repeated=0.5)
BAD: Final = NetworkQuality(slow=0.2, lost=0.1, without_response=0.1, repeated=0.3, delayed=0.1)
NO_CALLS: Final = NetworkQuality(lost=1.0)
NO_RESPONSES: Final = NetworkQuality(without_response=1.0)


class Network:
    """The network to the store. A call that was sent arrives even if its sender has timed out."""

    def __init__(self, store: FakeLeaseStore, random_: random.Random) -> None:
        self.quality = CALM
        self._store = store
        self._random = random_

    async def renew(self, gateway: str, requests: Sequence[LeaseRequest]) -> list[LeaseGrant]:
        loop, response = asyncio.get_running_loop(), asyncio.Future[list[LeaseGrant]]()

        def arrive() -> None:
            grants = self._store.apply(gateway, requests)
            if not response.done() and not self._happens(quality.without_response):
                response.set_result(grants)

        quality = self.quality
        if not self._happens(quality.lost):
            is_delayed = self._happens(quality.delayed)
            delay_s = self._random.uniform(0, MAX_DELAY_S) if is_delayed else TIMELY_S
            loop.call_later(delay_s, arrive)
        if self._happens(quality.repeated):
            loop.call_later(self._random.uniform(0, MAX_DELAY_S), arrive)
        grants = await response
        await asyncio.sleep(TOO_LATE_S if self._happens(quality.slow) else TIMELY_S)
        return grants

    def _happens(self, share: float) -> bool:
        """Decide at random; return True in this share of the calls."""
        return self._random.random() < share


@dataclass(eq=False)
class Gateway:
    leases: Leases
    sweeping: asyncio.Task[None]
    reserved: int = 0
    max_reserved: int = 0
    is_killed: bool = False

    def kill(self) -> None:
        """Stop at once: nothing is returned, settled or reported any more."""
        self.sweeping.cancel()
        self.is_killed = True


@dataclass
class Simulation:
    """Gateways that share a budget, and their true spending from it."""

    random_: random.Random
    store: FakeLeaseStore = field(init=False)
    network: Network = field(init=False)
    gateways: list[Gateway] = field(init=False)
    killed: list[Gateway] = field(default_factory=list)
    spec: BucketSpec = BUDGET
    highest_limit: int = BUDGET.capacity  # of all specifications so far
    consumed: int = 0  # units that requests have used
    requests: set[asyncio.Task[None]] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)  # of requests that have ended

    def __post_init__(self) -> None:
        self.store = FakeLeaseStore(VirtualClock())
        self.network = Network(self.store, self.random_)
        self.gateways = [self.create_gateway() for _ in range(4)]

    def create_gateway(self) -> Gateway:
        leases = Leases(self.network, VirtualClock())
        return Gateway(leases, asyncio.create_task(leases.run()))

    @property
    def all_gateways(self) -> list[Gateway]:
        return [*self.gateways, *self.killed]

    def bound(self) -> int:
        """Return the most units that all gateways hold: reserved units, and one lease each."""
        return sum(gateway.max_reserved + MAX_LEASE for gateway in self.all_gateways)

    def send_request(self, phase: "Phase") -> None:
        """Send a request, unless its gateway has reserved so many units that bounds would grow."""
        gateway = self.random_.choice(self.gateways)
        if gateway.reserved > 3 * MAX_UNITS:
            return
        units, lasts_s = self.random_.randint(1, MAX_UNITS), self.random_.uniform(0, phase.lasts_s)
        task = asyncio.create_task(self._request(gateway, units, lasts_s))
        self.requests.add(task)
        task.add_done_callback(self._on_ended)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        self.requests.discard(task)
        if (error := task.exception()) is not None:
            self.errors.append(error)

    async def _request(self, gateway: Gateway, units: int, lasts_s: float) -> None:
        gateway.reserved += units
        gateway.max_reserved = max(gateway.max_reserved, gateway.reserved)
        try:
            await self._spend(gateway, units, lasts_s)
        finally:
            gateway.reserved -= units
            self.check()

    async def _spend(self, gateway: Gateway, units: int, lasts_s: float) -> None:
        spec = self.spec
        try:
            (charge,) = await gateway.leases.spend([SpendRequest(spec, units)])
        except RateLimitExceeded:
            # If the store rejects a request, at most the bound is left. This is not checked for a
            # gateway that cannot reach the store, a limit that changed meanwhile, or a killed
            # gateway.
            if (
                not gateway.leases.is_store_unavailable
                and spec is self.spec
                and not gateway.is_killed
            ):
                reserved_units = sum(gateway.reserved for gateway in self.all_gateways)
                assert self.consumed + reserved_units + self.bound() > spec.capacity
            return
        await asyncio.sleep(lasts_s)
        if not gateway.is_killed:
            used_units = self.random_.randint(0, units)
            gateway.leases.settle(charge, used_units)
            self.consumed += used_units

    def check(self) -> None:
        """Check the bounds on the spending of all gateways, and on the held units of each."""
        debts = MAX_DEBT * len(self.all_gateways)
        assert self.consumed <= self.highest_limit + self.bound() + debts
        for gateway in self.all_gateways:
            held_units = [
                lease.held
                for name, lease in self.store.buckets[BUDGET.key].leases.items()
                if name == gateway.leases._gateway
            ]
            assert sum(held_units) <= gateway.max_reserved + MAX_LEASE

    def apply_change(self, action: str, number: int) -> None:
        if action == "restart":
            self.killed.append(self.gateways[number])
            self.gateways[number].kill()
            self.gateways[number] = self.create_gateway()
        elif action == "lower":
            self.spec = replace(BUDGET, capacity=max(1, self.spec.capacity // 2))
        elif action == "raise":
            self.spec = replace(BUDGET, capacity=self.spec.capacity + 500)
            self.highest_limit = max(self.highest_limit, self.spec.capacity)
        elif action != "none":
            self.network.quality = QUALITIES[action]

    async def finish(self) -> None:
        """Let all requests end on a healthy network, and wait until late calls and leases ended."""
        self.network.quality = CALM
        while self.requests:
            await asyncio.wait(self.requests)
        await asyncio.sleep(MAX_DELAY_S + LEASE_S + IDLE_S + 2 * SWEEP_S)
        assert self.errors == []


QUALITIES: Final = {
    "calm": CALM,
    "slow": SLOW,
    "bad": BAD,
    "no calls": NO_CALLS,
    "no responses": NO_RESPONSES,
}


@dataclass(frozen=True)
class Phase:
    change: str  # applied at its beginning
    number: int  # index of the gateway that the change concerns
    num_requests: int
    pause_s: float  # between two requests, on average
    lasts_s: float  # of each request, at most


PHASES = st.builds(
    Phase,
    change=st.sampled_from(["restart", "lower", "raise", "none", *QUALITIES]),
    number=st.integers(0, 3),
    num_requests=st.integers(0, 80),
    pause_s=st.sampled_from([0.0, 0.01, 0.1, 1.0, 20.0]),
    lasts_s=st.sampled_from([0.0, 0.5, 90.0]),
)


async def _run_phases(simulation: Simulation, phases: Sequence[Phase]) -> None:
    for phase in phases:
        simulation.apply_change(phase.change, phase.number)
        for _ in range(phase.num_requests):
            simulation.send_request(phase)
            await asyncio.sleep(simulation.random_.expovariate(1.0) * phase.pause_s)
            simulation.check()
    await simulation.finish()


async def _try_to_spend(gateway: Gateway, request: SpendRequest) -> bool:
    """Spend the units; return False if they are refused."""
    with suppress(RateLimitExceeded):
        await gateway.leases.spend([request])
        return True
    return False


@pytest.fixture(autouse=True, scope="module")
def _logs_are_off() -> Iterator[None]:
    """Suppress thousands of log lines."""
    with structlog.testing.capture_logs():
        yield


@settings(max_examples=scaled(12, deep=200))
@given(st.lists(PHASES, min_size=1, max_size=10), st.integers(0, 2**32))
def test_no_schedule_breaks_the_bounds_or_loses_units(phases: list[Phase], seed: int) -> None:
    async def scenario() -> None:
        simulation = Simulation(random.Random(seed))

        await _run_phases(simulation, phases)

        counted_units = simulation.store.spent(BUDGET.key)
        max_lost_units = sum(
            gateway.max_reserved + MAX_LEASE + MAX_DEBT for gateway in simulation.killed
        )
        assert simulation.consumed - max_lost_units <= counted_units <= simulation.consumed
        remaining_units = simulation.spec.capacity - counted_units
        if remaining_units > 0:
            assert await _try_to_spend(
                simulation.gateways[0], SpendRequest(simulation.spec, remaining_units)
            )
        # The budget is used up now.
        assert not await _try_to_spend(simulation.gateways[1], SpendRequest(simulation.spec, 1))

    run_in_virtual_time(scenario())


@settings(max_examples=scaled(6, deep=100))
@given(st.sampled_from([CALM, REPEATED, BAD]), st.integers(0, 2**32))
def test_no_schedule_exceeds_a_rate_and_its_bursts(quality: NetworkQuality, seed: int) -> None:
    async def scenario() -> None:
        simulation = Simulation(random.Random(seed))
        simulation.network.quality = quality
        allowed: list[tuple[float, int]] = []
        for _ in range(150):
            gateway = simulation.random_.choice(simulation.gateways)
            units = simulation.random_.randint(1, MAX_UNITS)
            if await _try_to_spend(gateway, SpendRequest(RATE, units)):
                allowed.append((VirtualClock().monotonic_s(), units))
            await asyncio.sleep(simulation.random_.choice([0.0, 0.1, 0.1, 1.0, 15.0]))
        # A gateway that gets no response from the store limits its requests on its own.
        num_limiters = len(simulation.gateways) + 1 if quality is BAD else 1

        for first, (start_s, _) in enumerate(allowed):
            units = 0
            for now_s, more_units in allowed[first:]:
                units += more_units
                allowed_units = RATE.capacity + (now_s - start_s) / INTERVAL_S
                assert (
                    units <= num_limiters * allowed_units + len(simulation.gateways) * MAX_LEASE + 1
                )

        await simulation.finish()
        assert await _try_to_spend(simulation.gateways[0], SpendRequest(RATE, RATE.capacity))

    run_in_virtual_time(scenario())
