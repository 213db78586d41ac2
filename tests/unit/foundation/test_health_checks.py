"""The readiness probe: its checks, their interval and their time limit."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caret.foundation.web import health_checks
from caret.foundation.web.health_checks import HealthCheckMiddleware


class Dependencies:
    """The services that a process depends on."""

    def __init__(self, *, are_ready: bool = True) -> None:
        self.are_ready = are_ready
        self.num_checks = 0
        self.may_respond = asyncio.Event()
        self.may_respond.set()

    async def is_ready(self) -> bool:
        self.num_checks += 1
        await self.may_respond.wait()
        return self.are_ready


class Probe:
    def __init__(self, dependencies: Dependencies) -> None:
        self.now_s = 0.0
        self._health = HealthCheckMiddleware(
            _no_application, dependencies.is_ready, lambda: self.now_s
        )

    async def request(self) -> int:
        sent_messages: list[Mapping[str, Any]] = []

        async def send(message: Mapping[str, Any]) -> None:
            sent_messages.append(message)

        scope = {"type": "http", "method": "GET", "path": "/readyz"}
        await self._health(scope, _receive_nothing, send)
        return int(sent_messages[0]["status"])


async def test_the_probe_reports_the_state_of_the_dependencies() -> None:
    assert await Probe(Dependencies()).request() == 200
    assert await Probe(Dependencies(are_ready=False)).request() == 503


async def test_dependencies_are_checked_at_most_once_a_second() -> None:
    dependencies = Dependencies()
    probe = Probe(dependencies)

    statuses = await asyncio.gather(*(probe.request() for _ in range(50)))
    probe.now_s = 0.9
    await probe.request()
    num_checks_before = dependencies.num_checks
    probe.now_s = 1.1
    await probe.request()

    assert statuses == [200] * 50
    assert (num_checks_before, dependencies.num_checks) == (1, 2)


async def test_a_hanging_check_is_not_ready_and_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health_checks, "READY_TIMEOUT_S", 0.01)
    dependencies = Dependencies()
    dependencies.may_respond.clear()
    probe = Probe(dependencies)

    hung = [await probe.request() for _ in range(3)]
    dependencies.may_respond.set()
    recovered = await probe.request()

    assert hung == [503] * 3
    assert recovered == 200
    assert dependencies.num_checks == 1


async def test_a_cancelled_probe_does_not_cancel_the_others() -> None:
    dependencies = Dependencies()
    dependencies.may_respond.clear()
    probe = Probe(dependencies)
    cancelled, other_probe = (
        asyncio.create_task(probe.request()),
        asyncio.create_task(probe.request()),
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    cancelled.cancel()
    dependencies.may_respond.set()

    assert await other_probe == 200
    assert dependencies.num_checks == 1


async def _no_application(scope: object, receive: object, send: object) -> None:
    raise AssertionError("a probe reached the application")


async def _receive_nothing() -> dict[str, Any]:
    return {}
