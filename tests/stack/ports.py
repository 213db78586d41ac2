"""Free ports for processes that are started next and may be restarted.

They are below the range from which the kernel takes the ports of client connections. Otherwise such
a connection could take the port of a process that is restarting, and the process could not start
again. This has happened to an engine.

Several test processes run at once. A port that one of them got stays reserved until this process
ends, so that no other test process gets it, also while nothing listens on it.
"""

import secrets
import socket
from contextlib import ExitStack
from typing import Final

from caret.local.ports import LOOPBACK

_FIRST, _LAST = 10_000, 32_000  # the range of client ports starts at 32,768 on Linux
_MAX_TRIES: Final = 1_000
# The kernel removes such a name when the socket's process ends. The leading zero byte makes it a
# name without a file.
_RESERVATION: Final = "\0caret-test-port-{}"


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return different ports: each stays bound until all are found."""
    with ExitStack() as sockets:
        return [sockets.enter_context(_bind_free_port()).getsockname()[1] for _ in range(count)]


def _bind_free_port() -> socket.socket:
    for _ in range(_MAX_TRIES):
        port = _FIRST + secrets.randbelow(_LAST - _FIRST)
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.bind((LOOPBACK, port))
            _reserve(port)
        except OSError:
            listener.close()
        else:
            return listener
    raise OSError("no port is free")


def _reserve(port: int) -> None:
    """Reserve the port for this process. Raises OSError if a test process has reserved it."""
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        reservation.bind(_RESERVATION.format(port))
    except OSError:
        reservation.close()
        raise
    reservation.detach()  # it stays open until this process ends
