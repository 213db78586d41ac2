"""A DNS that knows loopback names, and never answers for others, as far as anybody would wait."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_GIVEN_UP_S = 20.0


@contextmanager
def silent_names() -> Iterator[None]:
    """`*.silent.test` is waited for in vain, `*.known.test` is 127.0.0.1."""
    over, asked = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **fields: Any) -> Any:
        if str(host).endswith(".silent.test"):
            over.wait(_GIVEN_UP_S)
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return asked("127.0.0.1" if str(host).endswith(".known.test") else host, *args, **fields)

    with patch.object(socket, "getaddrinfo", getaddrinfo):
        try:
            yield
        finally:
            over.set()
