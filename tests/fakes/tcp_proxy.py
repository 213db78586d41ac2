"""A TCP proxy to a Unix socket. A test can cut the connection.

While `is_cut` is set, the proxy discards all data and reports no error. It can also delay or lose
some responses.
"""

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_SLOW_S: Final = 0.6  # longer than MAX_CALL_S of leases.py, a gateway's timeout


class FaultProxy:
    def __init__(self, target: str) -> None:
        self._target = target
        self.slow_share = 0.0  # share of the responses that arrive late
        self.lost_share = 0.0  # share of the responses that never arrive
        self.port = 0
        self.is_cut = False
        self.drops_responses = False  # requests arrive, responses do not

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, server_writer, is_response=False))
                group.create_task(self._pump(server_reader, writer, is_response=True))
        except* OSError:
            pass
        finally:
            for open_writer in (writer, server_writer):
                open_writer.close()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_response: bool
    ) -> None:
        while data := await source.read(65_536):
            if self.is_cut or (is_response and self.drops_responses):
                continue
            if is_response and random.random() < self.lost_share:
                continue
            if is_response and random.random() < self.slow_share:
                await asyncio.sleep(_SLOW_S)
            target.write(data)
            await target.drain()
        raise ConnectionResetError  # so that the task group also ends the other direction


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run the proxy in its own thread; its clients are other processes."""
    proxy, loop = FaultProxy(target), asyncio.new_event_loop()
    started, stop_event = threading.Event(), asyncio.Event()

    async def run() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop_event.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop_event.set)
        thread.join(10)
        loop.close()
