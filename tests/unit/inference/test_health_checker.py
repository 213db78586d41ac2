"""Health checks of replicas, against fakes and a small server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from inference.pools.health import health_checker
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.health_checker import HealthChecker
from inference.pools.health.replica_states import MAX_FAILURES, HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica
from inference.pools.vllm.monitoring import VllmHealth
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas


class FakeHealthCheck:
    def __init__(self, *, unhealthy: Replica | None = None, hanging: Replica | None = None) -> None:
        self.unhealthy, self.hanging = unhealthy, hanging
        self.checked: list[str] = []

    async def check(self, replica: Replica) -> HealthStatus:
        self.checked.append(replica.name)
        if replica is self.hanging:
            await asyncio.Event().wait()
        return HealthStatus.UNHEALTHY if replica is self.unhealthy else HealthStatus.HEALTHY


async def test_an_unhealthy_replica_is_not_available() -> None:
    replicas = ReplicaStates(FakeClock())

    await HealthChecker(FakeHealthCheck(unhealthy=ONE), replicas, lambda: [ONE, TWO]).check_all()

    assert (replicas.get_circuit(ONE), replicas.get_circuit(TWO)) == (
        CircuitState.OPEN,
        CircuitState.CLOSED,
    )


async def test_a_hanging_replica_does_not_block_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_checker, "MAX_CHECK_S", 0.02)  # a shorter time limit
    replicas, health_check = ReplicaStates(FakeClock()), FakeHealthCheck(hanging=ONE)
    checker = HealthChecker(health_check, replicas, lambda: [ONE, TWO])

    for _ in range(MAX_FAILURES):
        await checker.check_all()

    assert (replicas.get_circuit(ONE), replicas.get_circuit(TWO)) == (
        CircuitState.OPEN,
        CircuitState.CLOSED,
    )
    assert health_check.checked.count("two:1") == MAX_FAILURES


@pytest.mark.parametrize(
    ("status", "health"),
    [
        (200, HealthStatus.HEALTHY),
        (404, HealthStatus.HEALTHY),  # some engines have no /health
        (503, HealthStatus.UNHEALTHY),
        (500, HealthStatus.UNHEALTHY),
    ],
)
async def test_the_status_code_decides_the_health(status: int, health: HealthStatus) -> None:
    async with _server(status) as url, aiohttp.ClientSession() as session:
        assert await VllmHealth(session).check(Replica(name="", url=url)) is health


async def test_an_unreachable_replica_is_unhealthy() -> None:
    async with _server(200) as url:
        pass  # no server is at this URL afterwards

    async with aiohttp.ClientSession() as session:
        assert await VllmHealth(session).check(Replica(name="", url=url)) is HealthStatus.UNHEALTHY


@asynccontextmanager
async def _server(status: int) -> AsyncIterator[str]:
    async def respond(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/health", respond)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
