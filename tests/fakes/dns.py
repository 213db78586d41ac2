"""A name resolver: some names lead to this machine, and look-ups of others hang."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_MAX_HANG_S = 20.0


@contextmanager
def fake_dns() -> Iterator[None]:
    """Let look-ups of `*.silent.test` hang, and resolve `*.known.test` to 127.0.0.1."""
    test_ended, real_getaddrinfo = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **fields: Any) -> Any:
        if str(host).endswith(".silent.test"):
            test_ended.wait(_MAX_HANG_S)
            raise socket.gaierror(socket.EAI_AGAIN, "no response")
        return real_getaddrinfo(
            "127.0.0.1" if str(host).endswith(".known.test") else host, *args, **fields
        )

    with patch.object(socket, "getaddrinfo", getaddrinfo):
        try:
            yield
        finally:
            test_ended.set()
