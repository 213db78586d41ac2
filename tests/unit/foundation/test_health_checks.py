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
    """Requests the readiness endpoint of a process with these dependencies."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.now_s = 0.0
        self._health = HealthCheckMiddleware(
            _no_application, dependencies.is_ready, lambda: self.now_s
        )

    async def request(self) -> int:
        """Return the status of the response."""
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
    num_checks_in_the_first_second = dependencies.num_checks
    probe.now_s = 1.1
    await probe.request()

    assert statuses == [200] * 50
    assert (num_checks_in_the_first_second, dependencies.num_checks) == (1, 2)


async def test_a_process_with_a_hanging_check_is_not_ready_and_starts_no_other_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health_checks, "READY_TIMEOUT_S", 0.01)
    dependencies = Dependencies()
    dependencies.may_respond.clear()
    probe = Probe(dependencies)

    statuses_while_hanging = [await probe.request() for _ in range(3)]
    dependencies.may_respond.set()
    status_afterwards = await probe.request()

    assert statuses_while_hanging == [503] * 3
    assert status_afterwards == 200
    assert dependencies.num_checks == 1


async def test_a_cancelled_request_does_not_cancel_the_check_of_others() -> None:
    dependencies = Dependencies()
    dependencies.may_respond.clear()
    probe = Probe(dependencies)
    cancelled_request = asyncio.create_task(probe.request())
    other_request = asyncio.create_task(probe.request())
    for _ in range(2):  # until both requests wait for the same check
        await asyncio.sleep(0)

    cancelled_request.cancel()
    dependencies.may_respond.set()

    assert await other_request == 200
    assert dependencies.num_checks == 1


async def _no_application(scope: object, receive: object, send: object) -> None:
    raise AssertionError("a probe reached the application")


async def _receive_nothing() -> dict[str, Any]:
    return {}
