"""`manage.py console` as it runs."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest

from caret.embedded.paths import REPOSITORY
from tests.stack.console import console
from tests.stack.services import Services


@pytest.fixture(scope="module")
def port(services: Services) -> Iterator[int]:
    with console(services) as number:
        yield number


def test_it_answers_the_probe(port: int) -> None:
    assert _ask(port, "GET", "/healthz")[0] == 200


def test_it_is_ready_when_postgres_and_redis_answer(port: int) -> None:
    assert _ask(port, "GET", "/readyz")[0] == 200


@pytest.mark.parametrize(
    "lost",
    [
        {"REDIS_URL": "redis://127.0.0.1:1/0"},
        {"REDIS_URL": "unix:///no/such/socket"},
    ],
)
def test_without_redis_it_lives_and_is_not_ready(services: Services, lost: dict[str, str]) -> None:
    with console(services, **lost) as port:
        answers = [_ask(port, "GET", path)[0] for path in ("/healthz", "/readyz")]

    assert answers == [200, 503]


def test_its_pages_carry_the_headers_of_production(port: int) -> None:
    status, headers = _ask(port, "GET", "/sign-in")

    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


@pytest.mark.parametrize(
    "content_type",
    ["text/html; charset*=nope''x", "text/html; charset*=idna''..", "text/html; charset=\xe9\xff"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_head_that_cannot_be_read_is_the_clients_mistake(
    port: int, method: str, content_type: str
) -> None:
    status, _ = _ask(port, method, "/sign-in", {"Content-Type": content_type})

    assert status < 500


def test_a_body_over_a_mebibyte_is_refused_before_it_is_stored(port: int) -> None:
    status, headers = _ask(port, "POST", "/sign-in", body=b"x" * (1024 * 1024 + 1))

    assert status == 413
    assert headers["content-type"] == "application/problem+json"


def test_a_strangers_host_is_refused(port: int) -> None:
    assert _ask(port, "GET", "/sign-in", host="evil.example")[0] == 400


def test_idle_connections_do_not_close_it_for_others(port: int) -> None:
    with ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))

        answers = [_ask(port, "GET", path)[0] for path in ("/healthz", "/sign-in")]

    assert answers == [200, 200]


def test_the_probe_is_answered_under_any_host(services: Services) -> None:
    with console(services, CARET_ALLOWED_HOSTS="caret.example.com") as number:
        probe = _ask(number, "GET", "/healthz", host="127.0.0.1")
        page = _ask(number, "GET", "/sign-in", host="127.0.0.1")

    assert (probe[0], page[0]) == (200, 400)


def test_a_stranger_cannot_claim_to_come_over_https(services: Services) -> None:
    with console(services, CARET_HTTPS="True") as number:
        status, headers = _ask(number, "GET", "/sign-in", {"X-Forwarded-Proto": "https"})

    assert (status, headers["location"]) == (301, "https://localhost/sign-in")


def test_a_trusted_proxy_says_what_its_client_used(services: Services) -> None:
    with console(services, CARET_HTTPS="True", CARET_TRUSTED_PROXIES="127.0.0.1") as number:
        by_https = _ask(number, "GET", "/sign-in", {"X-Forwarded-Proto": "https"})
        by_http = _ask(number, "GET", "/sign-in", {"X-Forwarded-Proto": "http"})

    assert (by_https[0], by_http[0]) == (200, 301)


def test_the_settings_of_production_pass_djangos_own_check(services: Services) -> None:
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=REPOSITORY,
        env={**os.environ, "CARET_HTTPS": "True"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr


def _ask(
    port: int,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    *,
    body: bytes = b"",
    host: str = "localhost",
) -> tuple[int, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, headers={"Host": host, **(headers or {})})
    response = connection.getresponse()
    received = {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return response.status, received
