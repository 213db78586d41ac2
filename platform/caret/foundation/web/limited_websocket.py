"""WebSockets with the limits of `ServerLimits`; their handshakes are limited_http's."""

import asyncio

from websockets.http11 import Request

from caret.foundation.web.gathered_writes import GatheringTransport
from caret.foundation.web.limited_http import SendDeadline, ServerConfig
from caret.foundation.web.paced_closing import PacedWebSocket


class LimitedWebSocket(PacedWebSocket):
    """A WebSocket that began as a request of LimitedHttp, and goes on with its transport."""

    config: ServerConfig
    transport: GatheringTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._send_deadline = SendDeadline(self.transport, self.config.limits.send_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._send_deadline.stop()
        for slot in self.transport.slots:
            slot.release()
        super().connection_lost(exc)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.transport.slots and not self.close_sent:
            # The task that reads this scope has been made and has not run yet.
            self.scope["state"]["slot"] = self.transport.slots[-1]

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_deadline.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_deadline.stop()
