"""A server that writes the bytes that a test gives it, as slowly as the test produces them."""

import socketserver
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.fakes.server_thread import serving_in_thread


@dataclass
class RawServer:
    url: str = ""
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def raw_server(pieces: Callable[[], Iterable[bytes]]) -> Iterator[RawServer]:
    """Run a server that writes `pieces` once it has read something."""
    raw = RawServer()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            raw.requests.append(self.request.recv(65_536))
            with suppress(OSError):  # the client has disconnected
                for piece in pieces():
                    self.request.sendall(piece)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    raw.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving_in_thread(server):
        yield raw
