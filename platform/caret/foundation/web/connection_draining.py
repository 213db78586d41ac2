"""WebSockets whose ends are spread over time.

When a network or a load balancer goes away, thousands of connections end in the same moment, and
each costs a few tasks: 9,700 held the loop for 1.5 s, in which nobody else got a word. So their
ends are told to the application a few at a time; a single one is told at once.

When this process is to end, the application is asked to end each connection, by a message of its
own kind: what is under way may be of use to somebody. uvicorn would cut it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

# 5,000 a second at most; at 100 us each that leaves half of the loop's time to the others.
MAX_PER_TURN: Final = 20
TURN_S: Final = 0.004


class PacedExecutor:
    """Does a few things at once, the rest a few at a time, in their order."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._num_left = MAX_PER_TURN
        self._next: asyncio.TimerHandle | None = None

    def schedule(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)
        self._work()

    def _work(self) -> None:
        while self._waiting and self._num_left:
            self._num_left -= 1
            self._waiting.popleft()()
        if self._next is None and self._num_left < MAX_PER_TURN:
            self._next = asyncio.get_running_loop().call_later(TURN_S, self._run_turn)

    def _run_turn(self) -> None:
        self._next, self._num_left = None, MAX_PER_TURN
        self._work()


_turns: Final = PacedExecutor()  # of the process's one loop


# To a consumer: `websocket_restart`. It closes the connection, soon.
RESTART: Final = {"type": "websocket.restart"}
SERVICE_RESTART: Final = 1012  # RFC 6455's registry: connect again


class DrainingWebSocketProtocol(WebSocketsSansIOProtocol):
    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
            return
        # The type is wider than uvicorn's own list of messages.
        self.queue.put_nowait(cast(Any, RESTART))

    def connection_lost(self, exc: Exception | None) -> None:
        _turns.schedule(partial(super().connection_lost, exc))
