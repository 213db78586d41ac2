"""Fuzz the ports of gateway and console with mutated requests, without a credential.

    python -m tests.fuzz.http_ports [--minutes 10] [--seed N] [--only gateway|console]

Prints one JSON line for each server: the seed, the number of requests, the counts of response
statuses, and the findings. The exit code is 1 if there is a finding. The same seed sends the same
bytes.

A finding is a 5xx status (except 505 for an unknown HTTP version), a server that exits or does not
respond to another client, or a stack trace in its log. The last requests up to the finding are
printed, too, oldest first.
"""

import argparse
import json
import random
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.benchmarks.hostile_edges import SERVERS, Server
from tests.benchmarks.processes import split_cores
from tests.fuzz.http_bytes import cut_at_random, mutated_request

_TIMEOUT_S: Final = 0.3  # for a mutated request: incomplete requests get no response
_CHECK_EVERY: Final = 100  # requests; then, or after a 5xx status, _find_damage checks the server
_NUM_KEPT: Final = 100  # last requests, which a finding shows
_OTHER_CLIENT_TIMEOUT_S: Final = 10.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.http_ports")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each server")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", default="", choices=("", *SERVERS))
    options = parser.parse_args(arguments)
    has_findings = False
    for name, serve in SERVERS.items():
        if options.only in ("", name):
            with serve(split_cores()) as server:
                has_findings |= _fuzz(server, options.minutes * 60, options.seed)
    return 1 if has_findings else 0


def _fuzz(server: Server, seconds: float, seed: int) -> bool:
    """Send requests until the time is over or there is a finding. Return whether there is one."""
    draw = random.Random(seed)
    ends_s = time.monotonic() + seconds
    statuses: Counter[str] = Counter()
    recent: deque[bytes] = deque(maxlen=_NUM_KEPT)
    findings: list[str] = []
    while time.monotonic() < ends_s and not findings:
        for _ in range(_CHECK_EVERY):
            data = mutated_request(draw)
            recent.append(data)
            status = _send(server, cut_at_random(draw, data))
            statuses[status] += 1
            if status.startswith("5") and not _is_expected(status, data):
                findings.append(f"{status} for the last request")
                break
        findings += _find_damage(server)
    if findings:
        findings += [f"sent: {data!r}" for data in recent]
    line = {"fuzzed": server.name, "seed": seed, "requests": statuses.total()}
    print(json.dumps({**line, "statuses": dict(statuses), "findings": findings}), flush=True)
    return bool(findings)


def _is_expected(status: str, data: bytes) -> bool:
    """Return True for the 505 with which some parsers reject an unknown HTTP version."""
    return status == "505" and b"HTTP/" in data


def _send(server: Server, parts: Sequence[bytes]) -> str:
    """Return the three digits of the first response's status, "none" after a timeout, or "closed".

    "closed" means that the server closed the connection without a response, or that no connection
    was possible. In the latter case, _find_damage notices that the server has exited.
    """
    url = urlsplit(server.url)
    address = (str(url.hostname), url.port or 0)
    try:
        with socket.create_connection(address, timeout=_TIMEOUT_S) as client:
            for part in parts:
                client.sendall(part)
            response = client.recv(4_096)
    except TimeoutError:
        return "none"
    except OSError:
        return "closed"
    words = response.split(maxsplit=2)
    return words[1].decode("latin-1")[:3] if len(words) > 1 else "closed"


def _find_damage(server: Server) -> list[str]:
    """Return a finding if another client does not get status 200, or the log has a stack trace."""
    url = urlsplit(server.url)
    connection = HTTPConnection(str(url.hostname), url.port, timeout=_OTHER_CLIENT_TIMEOUT_S)
    try:
        server.request(connection)
        if (status := connection.getresponse().status) != 200:
            return [f"another client got {status}"]
    except (OSError, HTTPException) as error:
        return [f"another client got no response: {error!r}"]
    finally:
        connection.close()
    return _stack_traces(server.log)


def _stack_traces(log: Path) -> list[str]:
    with suppress(FileNotFoundError):
        text = log.read_text(errors="replace")
        if "Traceback" in text or "http.internal_error" in text:
            return [f"a stack trace in the log: {text[-2_000:]}"]
    return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
