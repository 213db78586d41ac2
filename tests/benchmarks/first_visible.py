"""The time from a request until the first text, and the whole text, is on the screen.

A block of 59 tokens is requested through the real `caret-ls` and a real gateway. The engine is
simulated: it writes the first token after 60 ms, and then 100 tokens a second. An editor that shows
a suggestion as it grows is compared with an editor that shows only whole suggestions. The
display latency that `caret-ls` reports is compared with the gateway's first token (see
`display_latency`).

    python -m tests.benchmarks.first_visible [--rounds 50]
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from aiohttp import web

from caret_ls.outcome_tracker import MIN_SHOWN_S
from inference.recording.journal import SHIP_EVERY_S
from tests.benchmarks.display_latency import read_delivered_records, report_display_latency
from tests.benchmarks.installation import Running, create_home, own_gateway
from tests.benchmarks.results import Report, spread
from tests.stack.language_server import INVOKED, OpenBuffer, environment_of, language_server
from tests.stack.ports import free_port

FIRST_TOKEN_S: Final = 0.06
TOKEN_S: Final = 0.01
BLOCK: Final = """
    total = 0
    for item in items:
        if item.price > 0:
            total = total + item.price * item.count
        else:
            log.warning("no price: %s", item.name)
    return total"""
# A token is a line break with its indentation, a word with the space before it, or one character.
_TOKENS: Final = re.findall(r"\n *| ?\w+|\W", BLOCK)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.first_visible")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args(arguments)
    report = Report("first_visible")
    asyncio.run(_measure(options.rounds, report))
    return report.exit_status


async def _measure(num_rounds: int, report: Report) -> None:
    async with _engine() as url:
        with create_home() as home:
            gateway_context = own_gateway(home, engine_url=url, replica=url)
            # In a thread: starting and stopping a gateway blocks, but this loop runs the engine.
            running = await asyncio.to_thread(gateway_context.__enter__)
            try:
                for name in ("whole", "growing"):
                    before = len(read_delivered_records(home))
                    await _measure_editor(running, num_rounds, report, name)
                    await asyncio.sleep(4 * SHIP_EVERY_S)  # until the records are delivered
                    report_display_latency(report, name, read_delivered_records(home)[before:])
            finally:
                await asyncio.to_thread(gateway_context.__exit__, None, None, None)


async def _measure_editor(running: Running, num_rounds: int, report: Report, editor: str) -> None:
    can_grow = editor == "growing"
    settings = {"CARET_API_KEY": running.acme_key, "CARET_GATEWAY_URL": running.gateway_url}
    first_ms, whole_ms = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = environment_of(folder, CARET_LS_PREFETCH="no", **settings)
        async with language_server(environment, folder=folder, can_grow=can_grow) as server:
            await server.wait_for_status("ready")
            for number in range(num_rounds):
                text = f"import log\n\n\ndef total_{number}(items):"
                buffer = OpenBuffer.opened(server, folder / f"file_{number}.py", text)
                began_s, num_grown = time.perf_counter(), server.num_grown
                (item,) = await buffer.request_items(trigger=INVOKED)
                server.notify("$/caret/suggestionDisplayed", {"uri": buffer.uri})
                first_ms.append((time.perf_counter() - began_s) * 1000)
                while item["insertText"] != BLOCK:
                    num_grown = await server.wait_for_growth(num_grown)
                    # Not INVOKED, which would request alternatives.
                    (item,) = await buffer.request_items()
                whole_ms.append((time.perf_counter() - began_s) * 1000)
                await asyncio.sleep(MIN_SHOWN_S)  # the suggestion counts as shown
                buffer.close()
    for part, times_ms in (("first", first_ms), ("whole", whole_ms)):
        times = spread(times_ms)
        report.figure(f"{editor}.{part}", times["p50"], "ms", **times)


@asynccontextmanager
async def _engine() -> AsyncIterator[str]:
    app, port = web.Application(), free_port()
    app.router.add_post("/v1/completions", _complete)
    app.router.add_get("/{rest:.*}", _list_models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def _list_models(_request: web.Request) -> web.Response:
    """Answer any GET request. The gateway's health checks accept this response, too."""
    return web.json_response({"object": "list", "data": [{"id": "demo", "object": "model"}]})


async def _complete(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    with suppress(ConnectionResetError):  # the gateway stops a warm-up when a completion arrives
        await _stream_completion(request, response)
    return response


async def _stream_completion(request: web.Request, response: web.StreamResponse) -> None:
    # A warm-up requests a single token.
    num_tokens = min(len(_TOKENS), (await request.json())["max_tokens"])
    await response.prepare(request)
    await asyncio.sleep(FIRST_TOKEN_S - TOKEN_S)
    for number, text in enumerate(_TOKENS[:num_tokens], start=1):
        await asyncio.sleep(TOKEN_S)
        finish_reason = "stop" if number == num_tokens else None
        choice = {"index": 0, "text": text, "finish_reason": finish_reason}
        event = {"choices": [choice], "usage": {"completion_tokens": number}}
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
