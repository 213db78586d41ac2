"""The readiness probe: its checks, their interval and their time limit."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caret.foundation.web import health_checks
from caret.foundation.web.health_checks import HealthCheckMiddleware


class Ground:
    """The services that a process depends on."""

    def __init__(self, *, is_well: bool = True) -> None:
        self.is_well = is_well
        self.num_asked = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def is_ready(self) -> bool:
        self.num_asked += 1
        await self.answers.wait()
        return self.is_well


class Probe:
    def __init__(self, ground: Ground) -> None:
        self.now_s = 0.0
        self._health = HealthCheckMiddleware(_no_application, ground.is_ready, lambda: self.now_s)

    async def ask(self) -> int:
        sent: list[Mapping[str, Any]] = []

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/readyz"}
        await self._health(scope, _nothing, send)
        return int(sent[0]["status"])


async def test_it_says_how_its_ground_is() -> None:
    assert await Probe(Ground()).ask() == 200
    assert await Probe(Ground(is_well=False)).ask() == 503


async def test_a_crowd_asks_once_a_second() -> None:
    ground = Ground()
    probe = Probe(ground)

    answers = await asyncio.gather(*(probe.ask() for _ in range(50)))
    probe.now_s = 0.9
    await probe.ask()
    asked_within = ground.num_asked
    probe.now_s = 1.1
    await probe.ask()

    assert answers == [200] * 50
    assert (asked_within, ground.num_asked) == (1, 2)


async def test_a_ground_that_hangs_is_not_ready_and_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health_checks, "READY_TIMEOUT_S", 0.01)
    ground = Ground()
    ground.answers.clear()
    probe = Probe(ground)

    hung = [await probe.ask() for _ in range(3)]
    ground.answers.set()
    mended = await probe.ask()

    assert hung == [503] * 3
    assert mended == 200
    assert ground.num_asked == 1


async def test_who_leaves_leaves_the_others_their_answer() -> None:
    ground = Ground()
    ground.answers.clear()
    probe = Probe(ground)
    leaver, stayer = asyncio.create_task(probe.ask()), asyncio.create_task(probe.ask())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    leaver.cancel()
    ground.answers.set()

    assert await stayer == 200
    assert ground.num_asked == 1


async def _no_application(scope: object, receive: object, send: object) -> None:
    raise AssertionError("a probe reached the application")


async def _nothing() -> dict[str, Any]:
    return {}
