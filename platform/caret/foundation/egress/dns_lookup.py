"""DNS lookups for an event loop, each in its own thread.

The event loop's own lookups share a few threads, and an abandoned lookup keeps its thread. So a few
names whose DNS server never responds would block the lookups of all other names.
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
    """Return the addresses of a host name or IP address.

    The lookup has no timeout of its own. If the caller is cancelled, the thread runs on until the
    system resolver gives up, after about 30 s. Raises OSError, also for an invalid name.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[AddressInfo]] = loop.create_future()

    def run() -> None:
        try:
            set_future: Callable[[], None] = partial(
                future.set_result, _resolve_host(host, port, family)
            )
        except Exception as error:  # noqa: BLE001  # raised again in the caller
            set_future = partial(future.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            # The future is done already if the caller was cancelled.
            loop.call_soon_threadsafe(lambda: None if future.done() else set_future())

    threading.Thread(target=run, daemon=True).start()
    return await future


def _resolve_host(host: str, port: int, family: socket.AddressFamily) -> list[AddressInfo]:
    try:
        return list(socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM))
    except UnicodeError as error:  # an empty label, or one that is too long
        raise socket.gaierror(socket.EAI_NONAME, "this is not a host name") from error
