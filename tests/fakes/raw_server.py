"""A server that writes the bytes that a test gives it, as slowly as the test produces them."""

import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


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

    with Server(("127.0.0.1", 0), Handler) as server:
        raw.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield raw
        finally:
            server.shutdown()
            thread.join()
