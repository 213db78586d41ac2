"""The console as a process (`manage.py console`): health checks, limits and trusted proxies."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Final

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from caret.local.paths import REPOSITORY
from caret.management.commands import console as console_command
from console.assets.console_files import asset_url
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn
from tests.stack.console import console
from tests.stack.services import Services

_PROXY: Final = "127.0.0.2"


@pytest.fixture(scope="module")
def port(services: Services) -> Iterator[int]:
    with console(services) as number:
        yield number


def test_the_health_check_responds(port: int) -> None:
    assert _request(port, "GET", "/healthz")[0] == 200


def test_the_console_is_ready_if_postgres_and_redis_respond(port: int) -> None:
    assert _request(port, "GET", "/readyz")[0] == 200


def test_without_redis_the_console_is_alive_but_not_ready(services: Services) -> None:
    with console(services, REDIS_URL="unix:///no/such/socket") as port:
        statuses = [_request(port, "GET", path)[0] for path in ("/healthz", "/readyz")]

    assert statuses == [200, 503]


def test_pages_have_the_security_headers_of_production(port: int) -> None:
    status, headers = _request(port, "GET", "/sign-in")

    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


@pytest.mark.parametrize(
    "content_type",
    ["text/html; charset*=nope''x", "text/html; charset*=idna''..", "text/html; charset=\xe9\xff"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_undecodable_header_causes_no_server_error(
    port: int, method: str, content_type: str
) -> None:
    status, _ = _request(port, method, "/sign-in", {"Content-Type": content_type})

    assert status < 500


def test_a_body_over_a_mebibyte_is_refused(port: int) -> None:
    status, headers = _request(port, "POST", "/sign-in", body=b"x" * (1024 * 1024 + 1))

    assert status == 413
    assert headers["content-type"] == "application/problem+json"


def test_an_unknown_host_is_refused(port: int) -> None:
    assert _request(port, "GET", "/sign-in", host="evil.example")[0] == 400


def test_idle_connections_do_not_block_requests(port: int) -> None:
    with ExitStack() as idle:
        for _ in range(300):  # the limit for an address without a credential is 256
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))

        statuses = [_request(port, "GET", path)[0] for path in ("/healthz", "/sign-in")]

    assert statuses == [200, 200]


def test_clients_that_do_not_read_a_static_file_do_not_block_requests(port: int) -> None:
    # Over 600 KB: more than the socket buffers of server and client together.
    request = f"GET {asset_url('playground.js')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with ExitStack() as unread:
        for _ in range(70):  # more than the 64 request slots; a static file needs none
            client = unread.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(("127.0.0.1", port))
            client.sendall(request)
            client.recv(1, socket.MSG_PEEK)  # the response has begun

        status, headers = _request(port, "GET", "/sign-in")

    assert status == 200
    assert "retry-after" not in headers


@pytest.mark.parametrize(
    "headers",
    [{"X-Long": "x" * 65_536}, {f"X-{number}": "y" for number in range(101)}],
    ids=["too large", "too many"],
)
def test_headers_over_the_limits_are_refused(port: int, headers: dict[str, str]) -> None:
    assert _request(port, "GET", "/sign-in", headers)[0] == 431


@pytest.fixture(scope="module")
def strict_port(services: Services) -> Iterator[int]:
    strict = {
        "CARET_HEADER_TIMEOUT_S": "4",
        "CARET_ALLOWED_HOSTS": "localhost",
        "CARET_MAX_UNAUTHENTICATED_PER_ADDRESS": "2",
    }
    with console(services, **strict) as number:
        yield number


def test_headers_that_arrive_too_late_get_a_timeout(strict_port: int) -> None:
    with socket.create_connection(("127.0.0.1", strict_port)) as client:
        client.sendall(b"GET /sign-in HTTP/1.1\r\n")

        assert client.recv(4_096).startswith(b"HTTP/1.1 408")


def test_only_health_checks_respond_to_a_host_that_is_not_allowed(strict_port: int) -> None:
    paths = ("/healthz", "/readyz", "/sign-in")

    statuses = [_request(strict_port, "GET", path, host="127.0.0.1")[0] for path in paths]

    assert statuses == [200, 200, 400]


def test_connections_of_signed_in_users_are_not_closed_for_anonymous_ones(
    strict_port: int, cast: Cast, sign_in: SignIn
) -> None:
    session = sign_in(cast.acme.administrator).cookies[settings.SESSION_COOKIE_NAME].value
    cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}", "Host": "localhost"}
    with ExitStack() as idle:
        signed_in = HTTPConnection("127.0.0.1", strict_port, timeout=120)
        signed_in.auto_open = False  # a connection that the server closed is not opened again
        signed_in.connect()
        for _ in range(2):  # the second request succeeds if the connection is still open
            signed_in.request("GET", "/", headers=cookie)
            response = signed_in.getresponse()
            response.read()
            sockets = [socket.create_connection(("127.0.0.1", strict_port)) for _ in range(5)]
            for client_socket in sockets:
                idle.enter_context(client_socket)
            assert sockets[0].recv(1) == b""  # closed by the server to accept a later one
        signed_in.close()

    assert response.status == 200


def test_an_invalid_limit_stops_the_start_with_the_settings_name() -> None:
    process = subprocess.run(
        [sys.executable, "manage.py", "console"],
        cwd=REPOSITORY,
        env={**os.environ, "CARET_KEEP_ALIVE_S": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode != 0
    assert "CARET_KEEP_ALIVE_S" in process.stderr


def test_an_error_of_djangos_checks_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_error(_command: console_command.Command) -> None:
        raise SystemCheckError("a wrong model")

    def start(*_arguments: object, **_options: object) -> None:
        pytest.fail("The console started.")

    monkeypatch.setattr(console_command.Command, "check", find_error)
    monkeypatch.setattr(console_command, "configure_logging", lambda _process: None)
    monkeypatch.setattr(console_command, "serve_metrics", start)
    monkeypatch.setattr(console_command, "run_server", start)

    with pytest.raises(SystemCheckError, match="a wrong model"):
        call_command("console")


@pytest.fixture(scope="module")
def https_port(services: Services) -> Iterator[int]:
    with console(services, CARET_HTTPS="True", CARET_TRUSTED_PROXIES=_PROXY) as number:
        yield number


def test_a_forwarded_protocol_from_an_untrusted_client_is_ignored(https_port: int) -> None:
    status, headers = _request(https_port, "GET", "/sign-in", {"X-Forwarded-Proto": "https"})

    assert (status, headers["location"]) == (301, "https://localhost/sign-in")


@pytest.mark.parametrize(("protocol", "status"), [("https", 200), ("http", 301)])
def test_a_forwarded_protocol_from_a_trusted_proxy_is_used(
    https_port: int, protocol: str, status: int
) -> None:
    headers = {"X-Forwarded-Proto": protocol}

    assert _request(https_port, "GET", "/sign-in", headers, source=_PROXY)[0] == status


def _request(
    port: int,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    *,
    body: bytes = b"",
    host: str = "localhost",
    source: str = "127.0.0.1",
) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of the response. The headers' names are in lower case.

    `source` is the IP address of the client.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=120, source_address=(source, 0))
    connection.request(method, path, body, headers={"Host": host, **(headers or {})})
    response = connection.getresponse()
    received = {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return response.status, received
