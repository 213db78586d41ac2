"""Health probes of replicas, against fakes and a small server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from inference.pools.health import health_checker as stage
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.health_checker import HealthChecker
from inference.pools.health.replica_states import MAX_FAILURES, HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica
from inference.pools.vllm.health import VllmHealth
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas


class FakeProbe:
    def __init__(self, *, ill: Replica | None = None, hanging: Replica | None = None) -> None:
        self.ill, self.hanging = ill, hanging
        self.asked: list[str] = []

    async def check(self, replica: Replica) -> HealthStatus:
        self.asked.append(replica.name)
        if replica is self.hanging:
            await asyncio.Event().wait()
        return HealthStatus.UNHEALTHY if replica is self.ill else HealthStatus.HEALTHY


async def test_who_says_it_is_ill_is_not_asked() -> None:
    replicas = ReplicaStates(FakeClock())

    await HealthChecker(FakeProbe(ill=ONE), replicas, lambda: [ONE, TWO]).check_all()

    assert (replicas.get_circuit(ONE), replicas.get_circuit(TWO)) == (
        CircuitState.OPEN,
        CircuitState.CLOSED,
    )


async def test_who_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_PROBE_S", 0.02)  # the time limit itself, not our code
    replicas, probe = ReplicaStates(FakeClock()), FakeProbe(hanging=ONE)
    prober = HealthChecker(probe, replicas, lambda: [ONE, TWO])

    for _ in range(MAX_FAILURES):
        await prober.check_all()

    assert (replicas.get_circuit(ONE), replicas.get_circuit(TWO)) == (
        CircuitState.OPEN,
        CircuitState.CLOSED,
    )
    assert probe.asked.count("two:1") == MAX_FAILURES


@pytest.mark.parametrize(
    ("status", "wellness"),
    [
        (200, HealthStatus.HEALTHY),
        (404, HealthStatus.HEALTHY),
        (503, HealthStatus.UNHEALTHY),
        (500, HealthStatus.UNHEALTHY),
    ],
)
async def test_a_server_is_as_well_as_it_says(status: int, wellness: HealthStatus) -> None:
    async with _server(status) as url, aiohttp.ClientSession() as session:
        assert await VllmHealth(session).check(Replica(name="", url=url)) is wellness


async def test_where_nobody_listens_nobody_is_well() -> None:
    async with _server(200) as url, aiohttp.ClientSession() as session:
        pass
    async with aiohttp.ClientSession() as session:
        assert await VllmHealth(session).check(Replica(name="", url=url)) is HealthStatus.UNHEALTHY


@asynccontextmanager
async def _server(status: int) -> AsyncIterator[str]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/health", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
