"""WebSockets whose disconnects are spread over time, and that the application closes at a shutdown.

If a network or a load balancer fails, thousands of connections end at the same moment, and each
disconnect runs a few tasks. 9,700 disconnects blocked the event loop for 1.5 s. So only a few
disconnects at a time are reported to the application. A single disconnect is not delayed.

When this process shuts down, the application gets a `websocket.restart` message for each connection
and closes the connection itself. So a completion in flight can finish. uvicorn would close the
connections at once.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# At most 5,000 disconnects per second. Each takes 100 microseconds, so half of the event loop's
# time remains free.
MAX_PER_TURN: Final = 20
TURN_S: Final = 0.004


class PacedExecutor:
    """Runs callbacks in order, at most `max_per_turn` in each turn of TURN_S.

    The first callbacks of a turn run immediately, inside `schedule`.
    """

    def __init__(self, max_per_turn: int = MAX_PER_TURN) -> None:
        self._max_per_turn = max_per_turn
        # An ordered set of the waiting callbacks: the values are not used.
        self._callbacks: OrderedDict[Callable[[], None], None] = OrderedDict()
        self._num_left = max_per_turn  # callbacks that may still run in this turn
        self._next: asyncio.TimerHandle | None = None

    def schedule(self, work: Callable[[], None]) -> None:
        self._callbacks[work] = None
        self._run_waiting()

    def drop(self, work: Callable[[], None]) -> None:
        """Remove a waiting callback. Does nothing if the callback has run."""
        self._callbacks.pop(work, None)

    def _run_waiting(self) -> None:
        while self._callbacks and self._num_left:
            self._num_left -= 1
            work, _ = self._callbacks.popitem(last=False)
            work()
        if self._next is None and self._num_left < self._max_per_turn:
            self._next = asyncio.get_running_loop().call_later(TURN_S, self._run_turn)

    def _run_turn(self) -> None:
        self._next, self._num_left = None, self._max_per_turn
        self._run_waiting()


_disconnects: Final = PacedExecutor()  # for the only event loop of the process


# Makes Channels call the consumer's method `websocket_restart`, which closes the connection soon.
RESTART: Final = {"type": "websocket.restart"}
SERVICE_RESTART: Final = 1012  # RFC 6455's registry: the client should reconnect


class DrainingWebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, with paced disconnects and the message RESTART at a shutdown."""

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
            return
        # uvicorn's types do not list this message.
        self.queue.put_nowait(cast(Any, RESTART))

    def connection_lost(self, exc: Exception | None) -> None:
        _disconnects.schedule(partial(super().connection_lost, exc))
