"""A customer's SIEM: a real HTTP server and a real syslog server, on the loopback address."""

import datetime
import http.server
import json
import secrets
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone
from standardwebhooks.webhooks import Webhook

from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tests.fakes.server_thread import serving_in_thread
from tests.fixtures.companies import Company


@dataclass
class Hook:
    """A webhook. It responds with the next of `statuses`, or with 204 if none is left."""

    secret: str = ""
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)  # of its responses
    payloads: list[dict[str, Any]] = field(default_factory=list)  # the payloads that it accepted
    ids: list[str] = field(default_factory=list)  # of these payloads, from their headers
    num_requests: int = 0
    last: tuple[bytes, Mapping[str, str]] | None = None  # body and headers of the last payload

    @property
    def sequences(self) -> list[int]:
        return [payload["data"]["sequence"] for payload in self.payloads]

    def accept(self, body: bytes, headers: Mapping[str, str]) -> int:
        self.num_requests += 1
        status = self.statuses.pop(0) if self.statuses else 204
        if status == 204:
            self.payloads.append(self._verify(body, headers))
            self.ids.append(headers["webhook-id"])
            self.last = (body, headers)
        return status

    def _verify(self, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Verify the signature, and return the payload.

        The signature may have any time, because tests change the clock.
        """
        sent_at = datetime.datetime.fromtimestamp(int(headers["webhook-timestamp"]), datetime.UTC)
        signed = Webhook(self.secret).sign(headers["webhook-id"], sent_at, body.decode())
        assert signed == headers["webhook-signature"]
        payload: dict[str, Any] = json.loads(body)
        return payload


@dataclass
class Syslog:
    port: int = 0
    resets_connections: bool = False  # resets each connection before it reads anything
    keeps_connections: bool = False  # reads everything, and keeps its side of connections open
    stop_event: threading.Event = field(default_factory=threading.Event)
    lines: list[str] = field(default_factory=list)
    num_connections: int = 0

    @property
    def sequences(self) -> list[int]:
        return [json.loads(line[line.index("{") :])["sequence"] for line in self.lines]


@contextmanager
def webhook(context: ssl.SSLContext | None = None) -> Iterator[Hook]:
    hook = Hook()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(hook.accept(body, dict(self.headers)))
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        # So that a client that follows a redirect with GET is counted.
        do_GET = do_POST  # noqa: N815  # as http.server calls it

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    hook.url = f"{scheme}://127.0.0.1:{server.server_port}/hook/planted-path"
    with serving_in_thread(server):
        yield hook


@contextmanager
def syslog_server(context: ssl.SSLContext | None = None) -> Iterator[Syslog]:
    syslog = Syslog()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            syslog.num_connections += 1
            if syslog.resets_connections:
                # Lingering for 0 s makes `close` send a reset.
                linger = struct.pack("ii", 1, 0)
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.request.close()
                return
            while length := self._read_length():
                syslog.lines.append(self.rfile.read(length).decode("ascii"))
            if syslog.keeps_connections:
                syslog.stop_event.wait()

        def _read_length(self) -> int:
            """Read the length before a message (RFC 6587); 0: the client has disconnected."""
            digits = b""
            while (char := self.rfile.read(1)) not in (b" ", b""):
                digits += char
            return int(digits or 0)

    server = _QuietServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    syslog.port = server.server_address[1]
    with serving_in_thread(server):
        try:
            yield syslog
        finally:
            syslog.stop_event.set()


class _QuietServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that distrust the certificate and disconnect."""


def make_sink(company: Company, address: str = "https://siem.invalid/hook") -> str:
    """Create an audit sink and return its ID."""
    # `from_sequence` None: only new entries are delivered.
    new = NewSink(name=secrets.token_hex(4), address=address, from_sequence=None)
    return str(create_sink(actor=company.platform, new=new, now=timezone.now()).sink.id)
