"""`manage.py console` as it runs."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.stack.services import Services

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def port(services: Services) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    environment = {**os.environ, **services.mark, "CARET_CONSOLE_PORT": str(number)}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "console"], cwd=ROOT, env=environment, stderr=subprocess.PIPE
    )
    try:
        _wait_for(number)
        yield number
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_it_answers_the_probe(port: int) -> None:
    assert _ask(port, "GET", "/healthz")[0] == 200


def test_its_pages_carry_the_headers_of_production(port: int) -> None:
    status, headers = _ask(port, "GET", "/sign-in")

    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_a_body_over_a_mebibyte_is_refused_before_it_is_stored(port: int) -> None:
    status, headers = _ask(port, "POST", "/sign-in", b"x" * (1024 * 1024 + 1))

    assert status == 413
    assert headers["content-type"] == "application/problem+json"


def test_a_strangers_host_is_refused(port: int) -> None:
    assert _ask(port, "GET", "/sign-in", host="evil.example")[0] == 400


def _ask(
    port: int, method: str, path: str, body: bytes = b"", *, host: str = "localhost"
) -> tuple[int, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, headers={"Host": host})
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return response.status, headers


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            _ask(port, "GET", "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("The console did not start.")
