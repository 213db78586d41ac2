"""Starts the HTTP servers of the gateway and of the console with the same limits."""

import asyncio
import gc
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from websockets.http11 import Request

from caret.foundation.environment import env_list
from caret.foundation.web.connection_draining import DrainingWebSocketProtocol
from caret.foundation.web.limited_http import ServerConfig
from caret.foundation.web.new_connection import NewConnection
from caret.foundation.web.response_sending import SendDeadline
from caret.foundation.web.server_limits import ServerLimits, raise_file_limit
from caret.foundation.web.write_coalescing import CoalescingTransport

log = structlog.get_logger(__name__)


class LimitedWebSocket(DrainingWebSocketProtocol):
    """A WebSocket that started as a LimitedHttp request and keeps its transport."""

    config: ServerConfig
    transport: CoalescingTransport

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
        if self.transport.slots and not self.close_sent:  # a rejected handshake has no scope
            # The task that reads this scope exists but has not run yet. If a trusted proxy forwards
            # the request, the last slot is that of the request.
            self.scope["state"]["slot"] = self.transport.slots[-1]

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_deadline.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_deadline.stop()


def run_server(application: str, *, host: str, port: int, **options: Any) -> None:
    """Serve until SIGTERM or SIGINT.

    `application` is a module and a name (`module:name`), imported here. `options` are passed to
    uvicorn. CARET_TRUSTED_PROXIES lists the proxies whose X-Forwarded-* headers are trusted, none
    by default. Raises BadSetting for an invalid setting, and SystemExit if the server cannot start.
    """
    proxies = env_list("CARET_TRUSTED_PROXIES")
    limits = _limit_to_files(ServerLimits.from_environment())
    config = ServerConfig(
        application,
        limits=limits,
        host=host,
        port=port,
        loop="uvloop",
        http=NewConnection,
        ws=LimitedWebSocket,
        ws_per_message_deflate=False,  # costs milliseconds of CPU to save kilobytes on a LAN
        timeout_keep_alive=int(limits.keep_alive_s),
        # Without a trusted proxy, X-Forwarded-* headers are ignored: a client could use them to
        # claim an address in a network that an API key is limited to.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        log_config=None,
        log_level="warning",  # INFO logs paths with their query strings
        access_log=False,
        server_header=False,
        **options,
    )
    config.load_app()  # before the event loop starts: Django forbids queries in its thread
    _exempt_start_up_heap()
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise SystemExit(STARTUP_FAILURE)


def _exempt_start_up_heap() -> None:
    """Exempt all existing objects from garbage collection: the server keeps them anyway.

    In the console, a full collection of them takes 140 ms, and 1,000 connections trigger one.
    """
    gc.collect()
    gc.freeze()


def _limit_to_files(limits: ServerLimits) -> ServerLimits:
    """Reduce `max_connections` if the process may not open so many files (sockets are files)."""
    max_connections = raise_file_limit(limits.max_connections)
    if max_connections < limits.max_connections:
        log.warning(
            "server.few_files", max_connections=max_connections, wanted=limits.max_connections
        )
    return replace(limits, max_connections=max_connections)
