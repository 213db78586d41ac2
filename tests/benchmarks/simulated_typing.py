"""Typing in simulated time: requests per keystroke, and keystrokes with a visible suggestion.

Editing sessions (see `edit_sessions`) are replayed through the parts of `caret-ls` on an event loop
whose time advances only when nothing is left to do. The result therefore does not depend on the
machine. Responses come from a synthetic model (`--model good` or `weak`: see `oracle_engine`), or
from a real gateway and engine (`--model demo`). Simulated time stands still until the model or the
gateway has responded. Then 60 ms of simulated time pass until the response's first token, and 10 ms
until each further token.

    visible   keystrokes with a suggestion within 150 ms and before the next key
    pause     from the last key before a pause of half a second to the first visible text
    right     keystrokes whose character is the first one of the suggestion that came before
              the key
    reasons   why no suggestion was visible at the other keystrokes

    python -m tests.benchmarks.simulated_typing [--model good] [--keystrokes 800]
"""

import argparse
import asyncio
import hashlib
import json
import sys
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

from caret.client.websocket_client import CompletionStream, open_stream
from caret_ls.completion_provider import InlineItem, InlineRequest
from caret_ls.frames import Frame
from caret_ls.session import Session as EditorSession
from caret_ls.session import TextChange
from caret_ls.settings import Settings
from caret_ls.text_document import Position
from tests.benchmarks.edit_sessions import Change, Session, make_sessions
from tests.benchmarks.installation import Running, create_home, engine_of, own_gateway
from tests.benchmarks.oracle_engine import FIRST_TOKEN_S, TOKEN_S, OracleEngine
from tests.benchmarks.results import Report, median, say, spread
from tests.benchmarks.typing_replay import KEY_PRESS_KINDS
from tests.fakes.virtual_time import VirtualClock, run_in_virtual_time

VISIBLE_S: Final = 0.15
MAX_REQUESTS: Final = 0.35  # for each keystroke
MIN_VISIBLE_PERCENT: Final = 35.0
_MAX_CHANGES: Final = 100  # in a session, so that a few hundred keystrokes cover several files
_MAX_PAUSE_S: Final = 2.0
_PAUSE_S: Final = 0.5
_URI: Final = "file:///nowhere/{path}"
# Shares of right words and of empty completions.
_MODELS: Final = {"good": (0.7, 0.3), "weak": (0.3, 0.6)}
# Errors of a real gateway on a busy machine. The request is sent again.
_RETRIED: Final = (
    "deadline_exceeded",
    "engine_timeout",
    "engine_unavailable",
    "engine_busy",
    "no_replica",
)

# Returns the text, and how many tokens the engine generated.
Complete = Callable[[Frame], tuple[str, int]]


@dataclass(slots=True)
class SimulatedGateway:
    complete: Complete
    num_requests: int = 0
    triggers: Counter[str] = field(default_factory=Counter)
    num_empty: int = 0
    num_cancelled: int = 0

    @asynccontextmanager
    async def request(self, frame: Frame) -> AsyncIterator[AsyncIterator[Frame]]:
        self.num_requests += 1
        self.triggers[frame["trigger"]] += 1
        text, num_tokens = self.complete(frame)
        is_over = False

        async def read_frames() -> AsyncIterator[Frame]:
            nonlocal is_over
            await asyncio.sleep(FIRST_TOKEN_S - TOKEN_S)
            for part in _split(text):
                await asyncio.sleep(TOKEN_S * max(num_tokens, 1) / len(_split(text)))
                yield {"type": "delta", "text": part}
            if not text:
                await asyncio.sleep(TOKEN_S * max(num_tokens, 1))
                self.num_empty += 1
            is_over = True
            yield {"type": "done", "finish_reason": "stop" if text else "filtered"}

        try:
            yield read_frames()
        finally:
            self.num_cancelled += not is_over


def _split(text: str) -> list[str]:
    """Split a completion into lines.

    A gateway sends the first line as it grows. Here, the first line comes in one piece. This hardly
    changes the results, because `caret-ls` offers a line only when it is complete.
    """
    return text.splitlines(keepends=True)


@dataclass(slots=True)
class Result:
    num_keys: int = 0
    num_visible: int = 0
    num_right: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    pauses_ms: list[float] = field(default_factory=list)


async def replay(session: Session, gateway: SimulatedGateway, result: Result) -> None:
    editor = EditorSession(Settings(), VirtualClock(), lambda _status: None)
    editor._client._gateway = gateway  # instead of a connection
    # Without a connection, the editor session would stay offline and send no requests.
    editor.board.set(is_connected=True, signed_out_reason=None)
    editor.completions.can_grow = True  # show the first line while further lines are generated
    for file in session.files:
        editor.open(_URI.format(path=file.path), "python", file.text)
    uri = _URI.format(path=session.path)
    editor.open(uri, "python", session.text)
    text = session.text
    changes = session.changes[:_MAX_CHANGES]
    suggestion: InlineItem | None = None
    # The last change is paired with itself. The user waits for a second after it.
    for change, following in pairwise([*changes, changes[-1]]):
        gap_s = (following.at_ms - change.at_ms) / 1000 if following is not change else 1.0
        start, end = (_position(text, at) for at in (change.at, change.at + change.delete))
        if change.kind == "typing" and suggestion is not None and change.insert:
            result.num_right += suggestion.text.startswith(change.insert[:1])
        text, cursor = change.apply_to(text)
        if change.insert or change.delete:
            editor.change(uri, [TextChange(change.insert, start, end)])
        request = InlineRequest(_position(text, cursor))
        suggestion = await _request_suggestion(
            editor, uri, request, change, result, min(max(gap_s, 0), _MAX_PAUSE_S)
        )
    editor.close(uri)
    await asyncio.sleep(5)  # in simulated time, so that pending requests end


async def _request_suggestion(
    editor: EditorSession,
    uri: str,
    request: InlineRequest,
    change: Change,
    result: Result,
    gap_s: float,
) -> InlineItem | None:
    """Wait for a suggestion until the next key; count it if it comes early enough."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    task = asyncio.create_task(editor.completions.provide(uri, request))
    done_times_s: list[float] = []  # one time, once the task is done
    task.add_done_callback(lambda _: done_times_s.append(loop.time()))
    await asyncio.sleep(gap_s)
    item = task.result() if task.done() else None
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if change.kind in KEY_PRESS_KINDS:
        result.num_keys += 1
        if item is not None and gap_s >= _PAUSE_S:
            result.pauses_ms.append((done_times_s[0] - began_s) * 1000)
        if item is not None and done_times_s[0] - began_s <= VISIBLE_S:
            result.num_visible += 1
        elif item is not None:
            result.reasons["late"] += 1
        else:
            result.reasons[str(editor.completions.last_reason)] += 1
    return item


def _position(text: str, offset: int) -> Position:
    line = text.count("\n", 0, offset)
    return Position(line, offset - (text.rfind("\n", 0, offset) + 1))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.simulated_typing")
    parser.add_argument("--model", choices=[*_MODELS, "demo"], default="good")
    parser.add_argument("--keystrokes", type=int, default=800)
    parser.add_argument(
        "--answers", type=Path, help="a file that keeps the demonstration model's answers"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    report = Report("simulated_typing")
    with _model(options.model, options.answers) as (complete, set_session):
        result = Result()
        gateway = SimulatedGateway(complete)
        for session in make_sessions(99, seed=options.seed):  # more than needed
            if result.num_keys >= options.keystrokes:
                break
            say(f"{session.path}, {result.num_keys} keystrokes")
            set_session(session)
            run_in_virtual_time(replay(session, gateway, result))
    requests = gateway.num_requests / result.num_keys
    triggers = {
        "triggers": dict(gateway.triggers),
        "empty": gateway.num_empty,
        "cancelled": gateway.num_cancelled,
    }
    report.target(
        f"{options.model}.requests", requests, "per keystroke", at_most=MAX_REQUESTS, **triggers
    )
    visible = 100 * result.num_visible / result.num_keys
    reasons = dict(result.reasons.most_common())
    report.judged(
        f"{options.model}.visible",
        visible,
        "% of keystrokes",
        passed=visible >= MIN_VISIBLE_PERCENT,
        target=f"at least {MIN_VISIBLE_PERCENT:g}",
        keystrokes=result.num_keys,
        reasons=reasons,
    )
    right = 100 * result.num_right / result.num_keys
    report.figure(f"{options.model}.right", right, "% of keystrokes")
    if result.pauses_ms:
        report.figure(
            f"{options.model}.pause", median(result.pauses_ms), "ms", **spread(result.pauses_ms)
        )
    return report.exit_status


# --- models


@contextmanager
def _model(name: str, answers: Path | None) -> Iterator[tuple[Complete, Callable[[Session], None]]]:
    """Yield the model, and a function that must be called with each session before its replay."""
    if name == "demo":
        with _demo_model(answers) as complete:
            yield complete, lambda _session: None
        return
    right_share, empty_share = _MODELS[name]
    oracle = OracleEngine(right_share=right_share, empty_share=empty_share)

    def complete_by_oracle(frame: Frame) -> tuple[str, int]:
        # Like the gateway's filter, return one line.
        line = list(takewhile(lambda token: "\n" not in token, oracle.predict(frame["prefix"])))
        return "".join(line).rstrip(), len(line)

    def set_session(session: Session) -> None:
        oracle.text = session.text
        for change in session.changes:
            oracle.text, _ = change.apply_to(oracle.text)

    yield complete_by_oracle, set_session


@contextmanager
def _demo_model(answers: Path | None) -> Iterator[Complete]:
    """Complete by a real gateway and engine, once for each text around the cursor."""
    known: dict[str, tuple[str, int]] = {}
    if answers is not None and answers.exists():
        known.update(json.loads(answers.read_text()))
    with (
        create_home() as home,
        engine_of(None, home) as engine_url,
        own_gateway(home, engine_url=engine_url, replica=engine_url) as running,
        _client_loop(running) as ask,
    ):

        def complete(frame: Frame) -> tuple[str, int]:
            around = f"{frame['path']}\0{frame['prefix']}\0{frame['suffix']}"
            digest = hashlib.sha256(around.encode()).hexdigest()
            if digest not in known:
                # The gateway would shed a prefetch earlier than other requests.
                known[digest] = ask({**frame, "trigger": "automatic"})
            return known[digest]

        try:
            yield complete
        finally:
            if answers is not None:
                answers.write_text(json.dumps(known))


@contextmanager
def _client_loop(running: Running) -> Iterator[Complete]:
    """Run a client on an event loop of its own, in real time."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        stream_context = open_stream(running.gateway_url, running.acme_key)
        stream = asyncio.run_coroutine_threadsafe(stream_context.__aenter__(), loop).result()

        def ask(frame: Frame) -> tuple[str, int]:
            return asyncio.run_coroutine_threadsafe(_complete(stream, frame), loop).result()

        try:
            yield ask
        finally:
            closing = stream_context.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(closing, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _complete(stream: CompletionStream, frame: Frame) -> tuple[str, int]:
    """Return the text and the number of generated tokens.

    The text is "" if the gateway withheld it. Errors of a busy machine are retried.
    """
    while True:
        text = ""
        done: Frame = {}
        await stream.send({**frame, "id": uuid.uuid4().hex})
        while not done:
            answer = await stream.receive()
            if answer["type"] == "delta":
                text += answer["text"]
            else:
                done = answer
        if done["type"] == "error" and done["code"] not in _RETRIED:
            raise RuntimeError(f"the gateway returned error {done['code']}")
        if done["type"] == "done" and done["finish_reason"] != "shed":
            is_complete = done.get("finish_reason") in ("stop", "length")
            return (text if is_complete else ""), int(done["meta"]["generated_tokens"])
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
