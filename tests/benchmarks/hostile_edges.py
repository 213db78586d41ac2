"""Hostile clients without a credential attack the gateway and the console: how much memory does
the server use, and how long does another client wait?

The attacks run one after the other, each for the given seconds: one header of 150 MiB, 20,000
headers a request, 1,000 sockets that send a header line every 4 s, 200 sockets that read nothing,
and 1,000 sockets opened and closed (`tests.benchmarks.hostile_clients`). Meanwhile another client
sends requests, each on a new connection, with pauses of 50 ms. It requests a completion from the
gateway, or the sign-in page of the console.

    memory   the server's largest resident memory during the attack, minus its memory before
    delay    the other client's slowest response during the attack, minus its median before

    python -m tests.benchmarks.hostile_edges [--seconds 12] [--only SERVER.ATTACK]

To check only that the benchmark runs: `--seconds 3`.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from caret.local.caret_services import manage_command
from tests.benchmarks.control_plane import control_plane
from tests.benchmarks.hostile_clients import ATTACKS
from tests.benchmarks.installation import create_home
from tests.benchmarks.loaded_gateway import loaded_gateway, new_company
from tests.benchmarks.processes import Cores, Program, memory_mb, pinned_to, running, split_cores
from tests.benchmarks.results import Report, median, say, spread
from tests.benchmarks.synthetic_engine import synthetic_engine
from tests.stack.ports import free_port

MAX_MEMORY_MB: Final = 20.0
MAX_DELAY_MS: Final = 100.0
_INTERVAL_S: Final = 0.05  # between two requests, and between two samples of the memory
_QUIET_S: Final = 5.0  # before each attack, to measure the other client without it
_TIMEOUT_S: Final = 30.0
_COMPLETION: Final = b'{"prompt":"def area(self):\\n    return ","suffix":"\\n","stream":true}'


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str
    pid: int
    largest_path: str  # the largest response that needs no credential
    request: Callable[[HTTPConnection], None]  # sent by the other client
    log: Path


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.hostile_edges")
    parser.add_argument("--seconds", type=float, default=12.0, help="duration of each attack")
    parser.add_argument("--only", default="", help="only results whose name contains this")
    options = parser.parse_args(arguments)
    report = Report("hostile_edges")
    cores = split_cores()  # one core for the server; the others for the engine and all clients
    for serve in SERVERS.values():
        with pinned_to(cores[1]), serve(cores) as server:
            for attack in ATTACKS:
                if options.only in f"{server.name}.{attack}":
                    _measure(server, attack, options.seconds, report)
    return report.exit_status


@contextmanager
def _gateway(cores: tuple[Cores, Cores]) -> Iterator[Server]:
    with create_home() as home, ExitStack() as stack:
        company = new_company(home, num_developers=1)
        key = company.keys[0]
        engine_url = stack.enter_context(synthetic_engine(home, cores=cores[1]))
        gateway = stack.enter_context(
            loaded_gateway(home, engine_url=engine_url, company=company, cores=cores)
        )

        def request(connection: HTTPConnection) -> None:
            headers = {"Authorization": f"Bearer {key}"}
            connection.request("POST", "/v1/completions", _COMPLETION, headers)

        log = home.paths.logs / "gateway.log"
        yield Server("gateway", gateway.url, gateway.pid, "/v1/models", request, log)


@contextmanager
def _console(cores: tuple[Cores, Cores]) -> Iterator[Server]:
    with control_plane() as plane:
        from console.assets.console_files import asset_url  # imported after Django is set up

        port = free_port()
        url = f"http://127.0.0.1:{port}"
        program = Program(
            name="console",
            command=manage_command("console"),
            ready_url=f"{url}/readyz",
            environment={"CARET_CONSOLE_PORT": str(port)},
        )
        with running(plane.home, program, cores=cores[0]) as pid:
            yield Server(
                "console",
                url,
                pid,
                asset_url("playground.js"),
                lambda connection: connection.request("GET", "/sign-in"),
                plane.home.paths.logs / "console.log",
            )


SERVERS: Final[dict[str, Callable[[tuple[Cores, Cores]], AbstractContextManager[Server]]]] = {
    "gateway": _gateway,
    "console": _console,
}


def _measure(server: Server, attack: str, seconds: float, report: Report) -> None:
    say(f"{server.name}: {attack}")
    quiet_ms = _time_other_client(server, _QUIET_S)
    before_mb = memory_mb(server.pid)
    with _run_attack(server, attack, seconds), _watch_memory(server.pid) as memory_samples:
        during_ms = _time_other_client(server, seconds)
    name = f"{server.name}.{attack}"
    report.target(
        f"{name}.memory",
        max(memory_samples) - before_mb,
        "MB",
        at_most=MAX_MEMORY_MB,
        before=before_mb,
    )
    delay_ms = max(during_ms) - median(quiet_ms)
    report.target(
        f"{name}.delay",
        delay_ms,
        "ms",
        at_most=MAX_DELAY_MS,
        quiet_max=max(quiet_ms),
        **spread(during_ms),
    )


@contextmanager
def _run_attack(server: Server, attack: str, seconds: float) -> Iterator[None]:
    """Run the attack in a process of low priority, which yields its core to the other client.

    Raises SystemExit if the attack fails: its results would prove nothing.
    """
    parts = urlsplit(server.url)
    command = [sys.executable, "-m", "tests.benchmarks.hostile_clients", attack]
    command += [str(parts.hostname), str(parts.port), server.largest_path, str(seconds)]
    with subprocess.Popen(command, preexec_fn=lambda: os.nice(15)) as process:
        yield
        status = process.wait(timeout=_TIMEOUT_S)
    if status:
        raise SystemExit(f"The attack {attack} failed with status {status}.")


@contextmanager
def _watch_memory(pid: int) -> Iterator[list[float]]:
    """Sample the process's resident memory at intervals."""
    memory_samples: list[float] = [memory_mb(pid)]
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_INTERVAL_S):
            memory_samples.append(memory_mb(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory_samples
    finally:
        is_over.set()
        thread.join()


def _time_other_client(server: Server, seconds: float) -> list[float]:
    """Return the milliseconds from each connection to the first bytes of the response's body."""
    ends_s = time.monotonic() + seconds
    durations_ms = []
    while time.monotonic() < ends_s:
        durations_ms.append(_time_request(server))
        time.sleep(_INTERVAL_S)
    return durations_ms


def _time_request(server: Server) -> float:
    """Return the milliseconds that one request took.

    Raises SystemExit if the response is not the expected one.
    """
    parts = urlsplit(server.url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=_TIMEOUT_S)
    began_s = time.perf_counter()
    try:
        server.request(connection)
        response = connection.getresponse()
        first = response.read(1)
        duration_ms = (time.perf_counter() - began_s) * 1000
    except (OSError, HTTPException) as error:
        raise SystemExit(f"The other client got no response: {error!r}") from error
    finally:
        connection.close()
    if response.status != 200 or not first:
        raise SystemExit(f"The other client got {response.status}.")
    return duration_ms


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
