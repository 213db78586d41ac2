"""Runs a server of the standard library in a thread."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving_in_thread(server: socketserver.BaseServer) -> Iterator[None]:
    """Serve until the block ends, then close the server."""
    # By default, the server notices only within half a second that it must stop.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
