"""The language server's handling of keystrokes, compared with a naive client.

Editing sessions (see `edit_sessions`) are replayed in real time through the real `caret-ls`, a real
gateway and a real engine. After each change the editor cancels its pending request and sends a new
one, as editors do. Pauses of more than two seconds are shortened to two. Then a naive client
replays the same sessions and sends the gateway a request at each change. The gateway's usage
records count the requests, prefetches included. With `--oracle`, the engine is a synthetic one (see
`oracle_engine`). With `--baseline`, an older `caret-ls`, which shows only whole suggestions, is
measured too.

    visible     keystrokes after which a suggestion arrived within 150 ms and before the next key
    pause       from the last key before a pause of half a second to the first visible text
    pause_whole from that key to the whole suggestion
    display     from sending a request to text on the screen, as `caret-ls` reports it with outcomes
                (see `display_latency`)
    from_memory suggestions for which no request was sent: the user typed the beginning of an older
                suggestion, or the suggestion was prefetched

The memory of the `caret-ls` process is measured with 50 files open, its startup from the start to
the status `ready` (the median of seven), and its CPU use at five keystrokes a second for half a
minute.

    python -m tests.benchmarks.language_server [--up .caret/up.json | --oracle] [--keystrokes 400]
        [--recording SESSIONS | --seed 1] [--baseline OLDER/platform/ide]
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final

from caret.client.websocket_client import CompletionStream, open_stream
from caret.contracts.usage import CompletionRecord, UsageRecord
from inference.recording.journal import SHIP_EVERY_S
from tests.benchmarks.display_latency import read_delivered_records, report_display_latency
from tests.benchmarks.edit_sessions import Change, Session, make_sessions, read_recording
from tests.benchmarks.installation import Home, Running, create_home, engine_of, own_gateway
from tests.benchmarks.oracle_engine import OracleEngine, running_oracle
from tests.benchmarks.results import Report, say, spread
from tests.benchmarks.typing_replay import KEY_PRESS_KINDS, Replay, ReplayedChange, Typist
from tests.stack.language_server import (
    LanguageServer,
    OpenBuffer,
    environment_of,
    language_server,
)

MAX_REQUESTS: Final = 0.35  # for each keystroke
MAX_MEMORY_MB: Final = 80.0
MAX_START_S: Final = 1.5
MAX_CPU_PERCENT: Final = 2.0
VISIBLE_MS: Final = 150.0
_PAUSE_S: Final = 0.5
_MAX_CHANGES: Final = 100  # of a session, so that a few hundred keystrokes cover several files
_NUM_STARTS: Final = 7
_NUM_FILES: Final = 50
_KEYS_A_SECOND: Final = 5
_TYPING_S: Final = 30
_SOURCE: Final = Path(__file__).read_text()
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_FROM_MEMORY_MS: Final = 25.0  # no request is that fast


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("keystrokes")
    if options.oracle:
        asyncio.run(_measure_with_oracle(options, report))
        return report.exit_status
    with (
        create_home() as home,
        engine_of(options.up, home) as engine_url,
        own_gateway(home, engine_url=engine_url, replica=engine_url) as running,
    ):
        asyncio.run(_measure(home, running, options, report))
    return report.exit_status


async def _measure_with_oracle(options: argparse.Namespace, report: Report) -> None:
    async with running_oracle() as oracle:
        with create_home() as home:
            gateway_context = own_gateway(home, engine_url=oracle.url, replica=oracle.url)
            # In a thread: starting and stopping a gateway blocks, but this loop runs the engine.
            running = await asyncio.to_thread(gateway_context.__enter__)
            try:
                await _measure(home, running, options, report, oracle)
            finally:
                await asyncio.to_thread(gateway_context.__exit__, None, None, None)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.language_server")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--up", type=Path, help="up.json of an installation whose engine is used")
    engine.add_argument("--oracle", action="store_true", help="measure with the synthetic engine")
    sessions = parser.add_mutually_exclusive_group()
    sessions.add_argument(
        "--recording", type=Path, help="recorded sessions to replay in place of generated ones"
    )
    sessions.add_argument("--seed", type=int, default=1, help="seed of the generated sessions")
    parser.add_argument(
        "--keystrokes", type=int, default=400, help="minimum number of keystrokes to measure"
    )
    parser.add_argument(
        "--baseline", type=Path, help="the folder platform/ide of an older version to compare with"
    )
    return parser.parse_args(arguments)


async def _measure(
    home: Home,
    running: Running,
    options: argparse.Namespace,
    report: Report,
    oracle: OracleEngine | None = None,
) -> None:
    sessions = list(_sessions(options))
    clients = {"caret_ls": _with_language_server, "naive": _with_naive_client}
    if options.baseline is not None:
        clients["baseline"] = partial(_with_language_server, package=options.baseline.resolve())
    for name, play in clients.items():
        before = len(read_delivered_records(home))
        replay = Replay()
        for number, session in enumerate(sessions):
            say(f"{name}: session {number + 1} of {len(sessions)}, {session.path}")
            if oracle is not None:
                oracle.text = _final_text(session)
            await play(running, session, replay)
        await asyncio.sleep(4 * SHIP_EVERY_S)  # until the records are delivered
        records = read_delivered_records(home)[before:]
        _report_results(report, name, replay, _completions(records))
        report_display_latency(report, name, records)
    with tempfile.TemporaryDirectory() as folder:
        await _measure_process(running, Path(folder), report)


def _final_text(session: Session) -> str:
    text = session.text
    for change in session.changes:
        text, _ = change.apply_to(text)
    return text


def _sessions(options: argparse.Namespace) -> Iterator[Session]:
    """Yield sessions until they have enough keystrokes."""
    num_keys = 0
    source = (
        read_recording(options.recording)
        if options.recording
        else make_sessions(99, seed=options.seed)  # more than needed
    )
    for session in source:
        if num_keys >= options.keystrokes:
            return
        num_keys += sum(change.kind in KEY_PRESS_KINDS for change in session.changes[:_MAX_CHANGES])
        yield session


# --- the clients


async def _with_language_server(
    running: Running, session: Session, replay: Replay, *, package: Path | None = None
) -> None:
    """Replay the session through `caret-ls`.

    `package` is the folder of an older version. None: this version, whose suggestions grow while
    the user waits.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with _language_server(running, folder, package=package) as server:
            for file in session.files:
                OpenBuffer.opened(server, _write_file(folder, file.path, file.text), file.text)
            own = _write_file(folder, session.path, session.text)
            buffer = OpenBuffer.opened(server, own, session.text)

            async def ask(change: Change) -> str:
                return await _ask_server(server, buffer, change)

            async def wait_grown() -> None:
                await server.wait_for_growth(server.num_grown)
                await buffer.request_items()

            typist = Typist(ask, wait_grown if package is None else None)
            await typist.play(session.changes[:_MAX_CHANGES], replay)


async def _ask_server(server: LanguageServer, buffer: OpenBuffer, change: Change) -> str:
    """Apply the change, and return the ID of the suggestion after it; "" if there is none."""
    if change.delete or change.insert:
        buffer.replace_text(change.at, change.at + change.delete, change.insert)
    buffer.cursor = change.at + len(change.insert) if change.cursor is None else change.cursor
    identifier, answer = server.begin_request(
        "textDocument/inlineCompletion", buffer.completion_params()
    )
    try:
        items = (await answer)["items"]
    except asyncio.CancelledError:
        server.notify("$/cancelRequest", {"id": identifier})
        raise
    if items:
        server.notify("$/caret/suggestionDisplayed", {"uri": buffer.uri})
    # The first argument of a suggestion's command is its ID.
    return str(items[0]["command"]["arguments"][0]) if items else ""


async def _with_naive_client(running: Running, session: Session, replay: Replay) -> None:
    """Send a request at each change. The gateway then ends the previous request."""
    text = session.text
    files = [{"path": file.path, "text": file.text} for file in session.files]
    async with open_stream(running.gateway_url, running.acme_key) as stream:
        texts: dict[str, str] = {}
        has_ended: dict[str, asyncio.Future[bool]] = {}
        reading = asyncio.create_task(_read_frames(stream, texts, has_ended))

        async def ask(change: Change) -> str:
            nonlocal text
            text, cursor = change.apply_to(text)
            completion_id = uuid.uuid4().hex  # the report compares the IDs of all sessions
            has_ended[completion_id] = asyncio.get_running_loop().create_future()
            around = {"prefix": text[:cursor], "suffix": text[cursor:], "files": files}
            frame = {"type": "complete", "id": completion_id, "path": session.path, **around}
            await stream.send(frame)
            has_text = await has_ended[completion_id]
            return completion_id if has_text and texts.get(completion_id, "").strip() else ""

        await Typist(ask).play(session.changes[:_MAX_CHANGES], replay)
        reading.cancel()
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()  # raises the task's error: it cannot end without one


async def _read_frames(
    stream: CompletionStream, texts: dict[str, str], has_ended: dict[str, asyncio.Future[bool]]
) -> None:
    while True:
        frame = await stream.receive()
        completion_id = frame["id"]
        if frame["type"] == "delta":
            texts[completion_id] = texts.get(completion_id, "") + frame["text"]
        elif not has_ended[completion_id].done():
            has_ended[completion_id].set_result(frame.get("finish_reason") in ("stop", "length"))


@asynccontextmanager
async def _language_server(
    running: Running, folder: Path, *, package: Path | None = None
) -> AsyncIterator[LanguageServer]:
    environment = {"CARET_API_KEY": running.acme_key, "CARET_GATEWAY_URL": running.gateway_url}
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    async with language_server(
        environment_of(folder, **environment), folder=folder, can_grow=package is None
    ) as server:
        await server.wait_for_status("ready")
        yield server


def _write_file(folder: Path, path: str, text: str) -> Path:
    """Write a file of a repository, so that files count as belonging together."""
    (folder / ".git").mkdir(exist_ok=True)
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


# --- the results


def _completions(records: Sequence[UsageRecord]) -> list[CompletionRecord]:
    return [record for record in records if isinstance(record, CompletionRecord)]


def _report_results(
    report: Report, name: str, replay: Replay, records: Sequence[CompletionRecord]
) -> None:
    keys = [replayed for replayed in replay.changes if replayed.is_key_press]
    finishes = Counter(str(record.finish_reason) for record in records)
    triggers = Counter(str(record.trigger) for record in records)
    share = len(records) / len(keys)
    fields = {"keystrokes": len(keys), "finishes": finishes, "triggers": triggers}
    if name == "caret_ls":
        report.target(f"{name}.requests", share, "per keystroke", at_most=MAX_REQUESTS, **fields)
    else:
        report.figure(f"{name}.requests", share, "per keystroke", **fields)
    ended_early = finishes["cancelled"] + finishes["superseded"]
    report.figure(f"{name}.cancelled", 100 * ended_early / max(len(records), 1), "%")
    _report_answers(report, name, keys)


def _report_answers(report: Report, name: str, keys: Sequence[ReplayedChange]) -> None:
    answers = [replayed.answer for replayed in keys if replayed.answer is not None]
    seen_ids: set[str] = set()
    from_memory = 0
    for answer in answers:
        is_from_memory = answer.id in seen_ids or answer.after_ms < _FROM_MEMORY_MS
        from_memory += is_from_memory
        seen_ids.add(answer.id)
    visible = sum(answer.after_ms <= VISIBLE_MS for answer in answers)
    paused = [
        replayed.answer
        for replayed in keys
        if replayed.answer is not None and replayed.pause_s >= _PAUSE_S
    ]
    report.figure(f"{name}.suggested", 100 * len(answers) / len(keys), "% of keystrokes")
    report.figure(f"{name}.from_memory", 100 * from_memory / max(len(answers), 1), "%")
    report.figure(f"{name}.visible", 100 * visible / len(keys), "% of keystrokes")
    if paused:
        first = spread([answer.after_ms for answer in paused])
        whole_ms = spread([answer.whole_after_ms for answer in paused])
        report.figure(f"{name}.pause", first["p50"], "ms", **first)
        report.figure(f"{name}.pause_whole", whole_ms["p50"], "ms", **whole_ms)


# --- the process


async def _measure_process(running: Running, folder: Path, report: Report) -> None:
    await _measure_start(running, folder, report)
    async with _language_server(running, folder) as server:
        source = _SOURCE
        for number in range(_NUM_FILES):
            file = _write_file(folder, f"file_{number}.py", source)
            buffer = OpenBuffer.opened(server, file, source)
            buffer.type_text("\n")
            await buffer.request_items()
        memory_mb = _resident_mb(server.process.pid)
        report.target("process.memory", memory_mb, "MB", at_most=MAX_MEMORY_MB, files=_NUM_FILES)
        cpu_percent = await _cpu_while_typing(server, buffer)  # in the last file
        report.target("process.cpu", cpu_percent, "%", at_most=MAX_CPU_PERCENT)


async def _measure_start(running: Running, folder: Path, report: Report) -> None:
    """Report medians of start times.

    The CPU time says more than the elapsed time if other processes use the cores too.
    """
    starts_s, cpus_s = [], []
    for _ in range(_NUM_STARTS):
        began_s = time.perf_counter()
        async with _language_server(running, folder) as server:
            starts_s.append(time.perf_counter() - began_s)
            cpus_s.append(_cpu_s(server.process.pid))
    report.target("process.start", median(starts_s), "s", at_most=MAX_START_S)
    report.figure("process.start_cpu", median(cpus_s), "s")


async def _cpu_while_typing(server: LanguageServer, buffer: OpenBuffer) -> float:
    """Return the percentage of one core that `caret-ls` uses while the user types.

    At each key, the editor cancels its pending request and sends a new one.
    """
    line = "def total(self, orders):\n    return sum(order.price for order in orders)\n"
    began_s, cpu_s = time.perf_counter(), _cpu_s(server.process.pid)
    pending = 0
    for character in islice(cycle(line), _KEYS_A_SECOND * _TYPING_S):
        buffer.type_text(character)
        if pending:
            server.notify("$/cancelRequest", {"id": pending})
        pending, answer = server.begin_request(
            "textDocument/inlineCompletion", buffer.completion_params()
        )
        # Nobody awaits the answer. Without this, asyncio logs the error of a cancelled request.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        await asyncio.sleep(1 / _KEYS_A_SECOND)
    return 100 * (_cpu_s(server.process.pid) - cpu_s) / (time.perf_counter() - began_s)


def _cpu_s(pid: int) -> float:
    # The second field, the name in brackets, may contain spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S  # utime and stime (proc_pid_stat(5))


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
