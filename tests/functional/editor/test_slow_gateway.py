"""`caret-ls` with responses that take seconds or never arrive: no error and no blocking."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from caret_ls.completion_client import MAX_RESPONSE_S
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.editor.slow_proxy import SlowProxy, slow_proxy
from tests.functional.editor.typist import open_file
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.stack.language_server import LanguageServer, OpenBuffer

pytestmark = [pytest.mark.engine, pytest.mark.deep]

_TIMEOUT_S: Final = 60.0
_LATE_S: Final = 3.0
_PAUSE_S: Final = 1.1  # between keys; a gap of up to 1 s would count as typing
# The language server waits 75 ms after a key, and up to 250 ms if responses are slow.
_MIN_SLOWED_WAIT_S: Final = 0.2
_NUM_KEYS: Final = 5
_MAX_KEYS: Final = 30


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


@pytest.fixture
async def proxy(site: Site) -> AsyncIterator[SlowProxy]:
    async with slow_proxy(site.url) as running_proxy:
        yield running_proxy


async def waited_s(proxy: SlowProxy, buffer: OpenBuffer, name: str) -> float:
    """Insert a line by one change, which counts as one key.

    Return the seconds until the gateway receives a request.
    """
    num_before = len(proxy.requests)
    buffer.type_text(f"\n        {name} = self.")
    pressed_s = time.monotonic()
    _, answer = buffer.server.begin_request(
        "textDocument/inlineCompletion", buffer.completion_params()
    )

    async def has_new_request() -> bool:
        return len(proxy.requests) > num_before

    assert await wait_until(has_new_request, timeout_s=_TIMEOUT_S)
    await answer  # otherwise the server would log an error when the test ends before the answer
    return proxy.requests[num_before][0] - pressed_s


async def quick_waits_s(proxy: SlowProxy, buffer: OpenBuffer) -> list[float]:
    """Return the waits of several keys, each after the previous response.

    On a busy machine, it takes more keys until one of them has a short wait.
    """
    waits_s: list[float] = []
    for number in range(_MAX_KEYS):
        if number >= _NUM_KEYS and min(waits_s) < _MIN_SLOWED_WAIT_S:
            break
        waits_s.append(await waited_s(proxy, buffer, f"quick_{number}"))
        await asyncio.sleep(_PAUSE_S)
        await buffer.server.wait_for_status("ready")
    return waits_s


async def explain_no_suggestion(server: LanguageServer) -> str | None:
    reason: str | None = (await server.request("$/caret/explainNoSuggestion", {}))["reason"]
    return reason


async def test_slow_responses_still_arrive_and_requests_become_less_frequent(
    ada: Developer, proxy: SlowProxy
) -> None:
    async with ada.editor(CARET_GATEWAY_URL=proxy.url, CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        num_statuses = len(server.statuses)
        buffer = open_file(server, ada)
        before_s = await quick_waits_s(proxy, buffer)
        proxy.delay_s = _LATE_S
        for number in range(_NUM_KEYS):
            buffer.type_text(f"\n        late_{number} = len(self.")
            began_s = time.monotonic()
            pending = asyncio.create_task(buffer.request_items())
            await server.wait_for_status("working")
            assert await pending
            assert time.monotonic() - began_s >= _LATE_S
            await server.wait_for_status("ready")
        proxy.delay_s = 0.0
        after_s = await waited_s(proxy, buffer, "patient")
        await server.wait_for_status("ready")

    assert min(before_s) < _MIN_SLOWED_WAIT_S <= after_s
    assert set(server.statuses[num_statuses:]) == {"ready", "working"}
    assert "failed" not in ada.log


async def test_missing_responses_cause_no_error_in_the_editor(
    ada: Developer, proxy: SlowProxy
) -> None:
    async with ada.editor(CARET_GATEWAY_URL=proxy.url, CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        num_statuses = len(server.statuses)
        buffer = open_file(server, ada)
        proxy.delay_s = None
        answers, began_s = [], time.monotonic()
        for number in range(_NUM_KEYS):
            buffer.type_text(f"\n        lost_{number} = self.")
            answers.append(asyncio.create_task(buffer.request_items()))
            await asyncio.sleep(_PAUSE_S)
        earlier_answers = await asyncio.gather(*answers[:-1])
        assert server.statuses[-1] == "working"
        last = await answers[-1]
        took_s = time.monotonic() - began_s
        await server.wait_for_status("ready")
        reason = await explain_no_suggestion(server)

    assert (earlier_answers, last) == ([[]] * (_NUM_KEYS - 1), [])
    assert took_s >= MAX_RESPONSE_S
    assert reason == "overloaded"
    (request_id,) = (frame["id"] for _, frame in proxy.requests)
    assert proxy.cancelled_ids == [request_id], (
        "later keys must join the one request until it is cancelled"
    )
    assert set(server.statuses[num_statuses:]) == {"ready", "working"}
    assert "failed" not in ada.log
