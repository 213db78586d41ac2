"""Prefix reuse: how much of each prompt has the engine cached, for each layout of the prompt?

Editing sessions (see `edit_sessions`) are replayed against one real engine. After each change,
every layout requests one token for its own prompt, in random order. Each layout has its own cache
namespace, so it cannot reuse another layout's cache. The engine reports how many of the prompt's
tokens were cached. A request counts as superseded if the next change comes before its first token
would have arrived.

`gateway` measures the default layout end to end: an editor sends frames over WebSocket to a gateway
in front of the same engine, and requests as many tokens as an inline completion has. The gateway's
own metrics are reported. Completions that the gateway's filter ends before the engine does are not
counted, because the engine then does not report how much was cached.

    python -m tests.benchmarks.prefix_reuse [--up .caret/up.json] [--recording FILE]
        [--keystrokes 300]
"""

import argparse
import asyncio
import json
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

import aiohttp

from caret.client.websocket_client import CompletionStream, open_stream
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.clock import SystemClock
from caret.local.engines.engine import MAX_CONTEXT_TOKENS, LocalModel, engine_from_environment
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt_options import PromptOptions
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from tests.benchmarks.edit_sessions import (
    Change,
    Session,
    iterate_texts,
    make_sessions,
    read_recording,
)
from tests.benchmarks.engine_streams import engine_session
from tests.benchmarks.installation import Running, create_home, engine_of, new_tenant, own_gateway
from tests.benchmarks.results import Report, median, percentile, rounded, say, spread

# platform/docs/benchmarks.md describes each layout.
LAYOUTS: Final = ("psm-sliding", "psm", "spm", "stable", "efim")
OUR_LAYOUT: Final = "stable"
USUAL_LAYOUT: Final = "psm-sliding"
MIN_CACHED_PERCENT: Final = 93.0
MAX_FIRST_TOKEN_SHARE: Final = 1 / 3  # of the usual layout's first-token time
# How long editors wait for another key before they send a request.
DEBOUNCE_MS: Final = 75.0
MAX_TOKENS: Final = 64
# In a session, so that a few hundred keystrokes cover several files.
_MAX_CHANGES: Final = 100
_DATA: Final = b"data: "


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    kind: str  # of the change after which it was sent
    prompt_tokens: int
    cached_tokens: int
    first_token_ms: float
    is_superseded: bool


@dataclass(slots=True)
class Layout:
    """One layout, its prompt writer and its results."""

    name: str
    writer: PromptWriter
    salt: str = field(default_factory=lambda: uuid.uuid4().hex)
    measured: list[MeasuredRequest] = field(default_factory=list)

    def requests_after(self, kind: str) -> list[MeasuredRequest]:
        """Return the requests after changes of this kind, such as typing."""
        return [request for request in self.measured if request.kind == kind]


@dataclass(frozen=True, slots=True)
class Engine:
    url: str
    model: LocalModel
    session: aiohttp.ClientSession

    async def first_token(
        self, layout: Layout, admitted: AdmittedRequest
    ) -> tuple[int, int, float]:
        """Return the numbers of the prompt's tokens and of the cached ones, and the milliseconds to
        the first token."""
        token_ids = assemble(layout.writer, admitted).token_ids
        body = {
            "model": self.model.served_name,
            "prompt": token_ids,
            "max_tokens": 1,
            "temperature": 0,
            "cache_salt": layout.salt,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        began_s, first_s, cached_tokens = time.perf_counter(), None, 0
        async with self.session.post(f"{self.url}/v1/completions", json=body) as response:
            response.raise_for_status()
            async for line in response.content:
                # Without the line break at its end.
                if line.startswith(_DATA) and line[len(_DATA) : -1] != b"[DONE]":
                    first_s = first_s or time.perf_counter()
                    cached_tokens = max(cached_tokens, _cached(json.loads(line[len(_DATA) :])))
        assert first_s is not None, "the engine sent no token"
        return len(token_ids), cached_tokens, (first_s - began_s) * 1000


@dataclass(slots=True)
class Gateway:
    """An editor's connection to the gateway, and its results."""

    stream: CompletionStream
    # Requests after typing for which the engine reported the number of cached tokens.
    measured: list[MeasuredRequest] = field(default_factory=list)
    finishes: Counter[str] = field(default_factory=Counter)
    num_requests: int = 0

    async def request_completion(
        self, change: Change, request: CompletionRequest, pause_ms: float | None
    ) -> None:
        """Request a completion after a change.

        `pause_ms` is the time to the next change, or None if there is none.
        """
        self.num_requests += 1
        await self.stream.send(
            {"type": "complete", "id": str(self.num_requests), **_frame(request)}
        )
        while (answer := await self.stream.receive())["type"] == "delta":
            pass
        if answer["type"] == "error":
            raise RuntimeError(f"the gateway returned error {answer['code']}")
        if answer["finish_reason"] == FinishReason.SHED:
            raise RuntimeError("The gateway shed a request: see its log for rejected replicas.")
        meta = answer["meta"]
        self.finishes[answer["finish_reason"]] += 1
        # Without any text, the time of the whole completion counts.
        first_ms = meta["first_token_ms"] or meta["total_ms"]
        is_superseded = pause_ms is not None and pause_ms < DEBOUNCE_MS + first_ms
        if meta["cached_tokens"] is not None and change.kind == "typing":
            tokens = (meta["prompt_tokens"], meta["cached_tokens"])
            self.measured.append(MeasuredRequest(change.kind, *tokens, first_ms, is_superseded))


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("typing")
    with (
        create_home() as home,
        engine_of(options.up, home) as engine_url,
        own_gateway(home, engine_url=engine_url, replica=engine_url) as running,
    ):
        model = engine_from_environment(0).model
        sessions = _sessions(options)
        asyncio.run(measure(running, model, sessions, report, num_keystrokes=options.keystrokes))
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of an installation whose engine is used")
    parser.add_argument(
        "--recording", type=Path, help="recorded sessions to replay in place of generated ones"
    )
    parser.add_argument(
        "--keystrokes", type=int, default=300, help="minimum number of keystrokes to measure"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


async def measure(
    running: Running,
    model: LocalModel,
    sessions: Iterable[Session],
    report: Report,
    *,
    num_keystrokes: int,
    max_tokens: int = MAX_TOKENS,
) -> None:
    """Replay sessions until every layout has `num_keystrokes`.

    `max_tokens` is the length of completions through the gateway.
    """
    tokenizer = load_tokenizer(model.path)
    layouts = [
        Layout(
            name,
            PromptWriter(
                tokenizer,
                model=model.served_name,
                max_context_tokens=MAX_CONTEXT_TOKENS,
                clock=SystemClock(),
                options=PromptOptions(layout=name),
            ),
        )
        for name in LAYOUTS
    ]
    async with (
        engine_session() as http_session,
        open_stream(running.gateway_url, running.acme_key) as stream,
    ):
        engine, gateway = Engine(running.engine_url, model, http_session), Gateway(stream)
        for number, session in enumerate(sessions):
            num_done = len(layouts[0].requests_after("typing"))
            say(f"session {number + 1}: {session.path}, {num_done} keystrokes")
            requests = list(
                islice(_iterate_requests(session, max_tokens), min(_MAX_CHANGES, num_keystrokes))
            )
            await _replay(engine, layouts, gateway, session, requests)
            if len(layouts[0].requests_after("typing")) >= num_keystrokes:
                break
    _report_results(report, {layout.name: layout for layout in layouts})
    if gateway.measured:  # the engine ended at least one completion before the filter did
        _report_requests(report, "gateway", gateway.measured)
    report.figure("gateway.requests", gateway.num_requests, "requests", finishes=gateway.finishes)


def _sessions(options: argparse.Namespace) -> Iterator[Session]:
    if options.recording is not None:
        return iter(read_recording(options.recording))
    return make_sessions(options.keystrokes, seed=options.seed)  # more than needed


async def _replay(
    engine: Engine,
    layouts: Sequence[Layout],
    gateway: Gateway,
    session: Session,
    requests: Sequence[tuple[Change, CompletionRequest]],
) -> None:
    snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
    principal = Principal(credential=snapshot.credentials[0], snapshot=snapshot)
    # The requests when the file is opened fill the caches. They are not measured.
    opened = _request(session, "", session.text)
    for layout in layouts:
        await engine.first_token(layout, _admitted(principal, opened))
    await gateway.request_completion(Change(0.0, "jump", 0), opened, None)
    # The last change is paired with itself, because no other change follows it.
    for (change, request), (following, _) in pairwise([*requests, requests[-1]]):
        pause_ms = None if following is change else following.at_ms - change.at_ms
        for layout in random.sample(layouts, len(layouts)):
            num_tokens, num_cached, first_ms = await engine.first_token(
                layout, _admitted(principal, request)
            )
            is_superseded = pause_ms is not None and pause_ms < DEBOUNCE_MS + first_ms
            layout.measured.append(
                MeasuredRequest(change.kind, num_tokens, num_cached, first_ms, is_superseded)
            )
        await gateway.request_completion(change, request, pause_ms)


def _iterate_requests(
    session: Session, max_tokens: int
) -> Iterator[tuple[Change, CompletionRequest]]:
    """Yield each change and the request after it. Editors also send a request after a jump."""
    for change, prefix, suffix in iterate_texts(session):
        yield change, _request(session, prefix, suffix, max_tokens)


def _request(
    session: Session, prefix: str, suffix: str, max_tokens: int = MAX_TOKENS
) -> CompletionRequest:
    return CompletionRequest(
        mode=Mode.INLINE,
        path=session.path,
        language="",
        prefix=prefix,
        suffix=suffix,
        files=session.files,
        repository=session.repository,
        max_tokens=max_tokens,
        stop=(),
        is_raw=False,
    )


def _frame(request: CompletionRequest) -> dict[str, Any]:
    return {
        "mode": request.mode.value,
        "path": request.path,
        "prefix": request.prefix,
        "suffix": request.suffix,
        "files": [
            {"path": file.path, "text": file.text, "edited_at": file.edited_at}
            for file in request.files
        ],
        "repository": {"name": request.repository},
        "max_tokens": request.max_tokens,
    }


def _admitted(principal: Principal, request: CompletionRequest) -> AdmittedRequest:
    return AdmittedRequest(principal, request, pool="", variant=NO_VARIANT)


def _cached(event: dict[str, Any]) -> int:
    details = (event.get("usage") or {}).get("prompt_tokens_details") or {}
    return int(details.get("cached_tokens") or 0)


def _report_results(report: Report, layouts: dict[str, Layout]) -> None:
    for name, layout in layouts.items():
        _report_layout(report, name, layout.requests_after("typing"), layout.measured)
    our_ms, usual_ms = (
        median([request.first_token_ms for request in layouts[name].requests_after("typing")])
        for name in (OUR_LAYOUT, USUAL_LAYOUT)
    )
    share = our_ms / usual_ms
    report.target(
        f"{OUR_LAYOUT}.first_token_to_{USUAL_LAYOUT}",
        share,
        "ratio",
        at_most=round(MAX_FIRST_TOKEN_SHARE, 3),
    )


def _report_layout(
    report: Report, name: str, typed: list[MeasuredRequest], measured: list[MeasuredRequest]
) -> None:
    _report_requests(report, name, typed, of_all_changes=rounded(_cached_percent(measured)))


def _report_requests(report: Report, name: str, typed: list[MeasuredRequest], **more: Any) -> None:
    cached = _cached_percent(typed)
    more["prompt_tokens"] = rounded(median([request.prompt_tokens for request in typed]))
    if name in (OUR_LAYOUT, "gateway"):
        target = f"at least {MIN_CACHED_PERCENT:g}"
        passed = cached >= MIN_CACHED_PERCENT
        report.judged(f"{name}.cached", cached, "%", passed=passed, target=target, **more)
    else:
        report.figure(f"{name}.cached", cached, "%", **more)
    new = [request.prompt_tokens - request.cached_tokens for request in typed]
    p90 = rounded(percentile(new, 90))
    report.figure(f"{name}.new_tokens", sum(new) / len(new), "tokens", **spread(new), p90=p90)
    times = [request.first_token_ms for request in typed]
    report.figure(f"{name}.first_token", median(times), "ms", **spread(times))
    superseded = sum(request.is_superseded for request in typed) / len(typed)
    report.figure(f"{name}.superseded", 100 * superseded, "%", n=len(typed))


def _cached_percent(requests: Sequence[MeasuredRequest]) -> float:
    prompt_tokens = sum(request.prompt_tokens for request in requests)
    return 100 * sum(request.cached_tokens for request in requests) / prompt_tokens


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
