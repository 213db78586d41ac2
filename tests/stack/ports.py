"""Ports that nobody listens on, for processes that are started next."""

import socket
from contextlib import ExitStack

from caret.embedded.ports import LOOPBACK


def free_ports(count: int) -> list[int]:
    """Different ones: all are held until the last is found."""
    with ExitStack() as held:
        listeners = [
            held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            for _ in range(count)
        ]
        for listener in listeners:
            listener.bind((LOOPBACK, 0))
        return [listener.getsockname()[1] for listener in listeners]
