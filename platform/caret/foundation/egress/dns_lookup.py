"""Looks up names for a loop, each in a thread of its own.

A loop's own look-ups share a few threads, and stay there when nobody waits for them any more: a
handful of names whose DNS never answers keeps all others waiting.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from caret.foundation.egress.egress_policy import AddressInfo


async def resolve(
    host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC
) -> list[AddressInfo]:
    """Takes no deadline: who waits no longer leaves a thread behind that ends with the system's
    resolver, after some 30 s. Raises OSError, of what can be no name, too."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[list[AddressInfo]] = loop.create_future()

    def run() -> None:
        try:
            tell: Callable[[], None] = partial(told.set_result, _resolve(host, port, family))
        except Exception as error:  # noqa: BLE001  # raised where it is waited for
            tell = partial(told.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(lambda: None if told.done() else tell())

    threading.Thread(target=run, daemon=True).start()
    return await told


def _resolve(host: str, port: int, family: socket.AddressFamily) -> list[AddressInfo]:
    try:
        return list(socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM))
    except UnicodeError as error:  # an empty label, or one that is too long
        raise socket.gaierror(socket.EAI_NONAME, "this is no name") from error
