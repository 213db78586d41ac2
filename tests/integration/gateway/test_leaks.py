"""Ten thousand completions with all kinds of endings leave no resources behind in the gateway.

The gateway, its Valkey and its journal are real; the engine is a fake.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection

from caret.contracts.usage import CompletionRecord
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, start_site, wait_until
from tests.integration.gateway.engine_control import held_engine, is_idle
from tests.integration.gateway.fake_engine import SHORT_TOKENS
from tests.stack.seed import SEED

_NUM_REQUESTS: Final = 10_000
_NUM_CLIENTS: Final = 20  # at once
_NUM_WARMUP: Final = 2_000  # requests before the resources are measured
_NUM_RECORDED: Final = 400  # requests of the test that also runs outside the deep suite
# The gateway keeps idle connections to the engine for a minute: at most one for each client.
_MAX_MORE_DESCRIPTORS: Final = _NUM_CLIENTS
# 2 KB for each of the 8,000 measured requests. Caches keep 1.1 KB of a request for some minutes,
# for example its lines.
_MAX_MORE_BYTES: Final = 16 * 1024 * 1024
# How completions end, in percent: "early_cancel" is sent right after the request, "cancel" after
# the first text. "close" ends the WebSocket, "drop" an HTTP connection.
_ENDINGS: Final = {"complete": 50, "cancel": 15, "early_cancel": 15, "close": 10, "drop": 10}
_MAX_REQUEST_S: Final = 60.0  # for each request, on a busy machine


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """The resources that a process holds."""

    num_descriptors: int
    num_bytes: int  # resident

    @classmethod
    def of_process(cls, pid: int) -> "ResourceUsage":
        status = Path(f"/proc/{pid}/status").read_text()
        # Such as "VmRSS:   81234 kB".
        memory_line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return cls(
            num_descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
            num_bytes=int(memory_line.split()[1]) * 1024,
        )


@pytest.fixture
def site(fake_engine_url: str) -> Iterator[Site]:
    with create_home() as home, start_site(home, fake_engine_url) as site:
        yield site


@pytest.mark.deep
async def test_ten_thousand_completions_leave_nothing_behind(site: Site) -> None:
    pid = site.gateway.child.pid
    await _request_many(site, _NUM_WARMUP)
    before = ResourceUsage.of_process(pid)

    counts = await _request_many(site, _NUM_REQUESTS - _NUM_WARMUP)

    async def are_descriptors_freed() -> bool:
        return (
            ResourceUsage.of_process(pid).num_descriptors
            <= before.num_descriptors + _MAX_MORE_DESCRIPTORS
        )

    assert await wait_until(are_descriptors_freed), (
        f"{before} became {ResourceUsage.of_process(pid)}"
    )
    assert ResourceUsage.of_process(pid).num_bytes <= before.num_bytes + _MAX_MORE_BYTES
    assert await wait_until(lambda: is_idle(site.engine_url))
    assert set(counts) == set(_ENDINGS)  # each ending occurred


async def test_each_completion_is_recorded_once(site: Site) -> None:
    counts = await _request_many(site, _NUM_RECORDED)

    async def are_all_delivered() -> bool:
        return len(site.records()) >= _NUM_RECORDED

    assert await wait_until(are_all_delivered)
    # The journal contains each record once. A record may be delivered twice.
    assert len(site.journaled_batches()) == _NUM_RECORDED
    records = [record for record in site.records() if isinstance(record, CompletionRecord)]
    assert len({record.request_id for record in records}) == len(records) == _NUM_RECORDED
    finishes = Counter(record.finish_reason.value for record in records)
    assert finishes == {
        "length": counts["complete"],
        "cancelled": _NUM_RECORDED - counts["complete"],
    }


async def _request_many(site: Site, count: int) -> Counter[str]:
    """Request completions with random endings, and return the number of each ending.

    The engine is held, so that no completion ends before its client cancels it.
    """
    clients = [_Client(site, random.Random(SEED + number)) for number in range(_NUM_CLIENTS)]
    async with held_engine(site.engine_url), asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.request_repeatedly(count // _NUM_CLIENTS))
    return sum((client.counts for client in clients), Counter())


@dataclass(slots=True)
class _Client:
    site: Site
    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    socket: ClientConnection | None = None

    async def request_repeatedly(self, count: int) -> None:
        headers = {"Authorization": f"Bearer {self.site.acme_key}"}
        async with aiohttp.ClientSession(self.site.url, headers=headers) as session:
            for number in range(count):
                (ending,) = self.random.choices(list(_ENDINGS), list(_ENDINGS.values()))
                self.counts[ending] += 1
                async with asyncio.timeout(_MAX_REQUEST_S):
                    if ending == "drop":
                        await self._request_and_disconnect(session)
                    else:
                        await self._request_over_websocket(str(number), ending)
        if self.socket is not None:
            await self.socket.close()

    async def _request_over_websocket(self, identifier: str, ending: str) -> None:
        socket = self.socket = self.socket or await self.site.open_websocket()
        tokens = SHORT_TOKENS if ending == "complete" else 512
        await socket.send(
            json.dumps({"type": "complete", "id": identifier, **_build_frame(tokens)})
        )
        if ending in ("cancel", "close"):
            await socket.recv()
        if ending == "close":
            socket.transport.abort()
            await socket.wait_closed()
            self.socket = None
            return
        if ending in ("cancel", "early_cancel"):
            await socket.send(json.dumps({"type": "cancel", "id": identifier}))
        while json.loads(await socket.recv())["type"] == "delta":
            pass

    async def _request_and_disconnect(self, session: aiohttp.ClientSession) -> None:
        body = {"prompt": "x = ", "max_tokens": 512, "stream": True}
        async with session.post("/v1/completions", json=body) as response:
            await response.content.readline()
            response.close()


def _build_frame(max_tokens: int) -> dict[str, Any]:
    return {"mode": "fim", "prefix": "x = ", "suffix": "\n", "max_tokens": max_tokens}
