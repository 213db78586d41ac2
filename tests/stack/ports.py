"""Free ports for processes that are started next and may be restarted.

They are below the range from which the kernel takes the ports of client connections. Otherwise such
a connection could take the port of a process that is restarting, and the process could not start
again. This has happened to an engine.
"""

import random
import socket
from contextlib import ExitStack
from typing import Final

from caret.local.ports import LOOPBACK

_FIRST, _LAST = 10_000, 32_000  # the range of client ports starts at 32,768 on Linux
_MAX_TRIES: Final = 1_000


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return different ports: each stays bound until all are found."""
    with ExitStack() as sockets:
        return [sockets.enter_context(_bind_free_port()).getsockname()[1] for _ in range(count)]


def _bind_free_port() -> socket.socket:
    for _ in range(_MAX_TRIES):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.bind((LOOPBACK, random.randint(_FIRST, _LAST)))
        except OSError:
            listener.close()
        else:
            return listener
    raise OSError("no port is free")
