"""`/live`: one socket, which is told the last minute's numbers as the page would show them.

open > whose? > told, every two seconds > asked again whose, every minute > closed
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from channels.consumer import AsyncConsumer
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from django.db import Error as DatabaseFailed
from django.utils import timezone, translation

from caret.foundation.web.connections import authenticate_connection
from console.insight.minute import said
from console.live.board import Board, Full
from console.live.door import Viewer, viewer_of
from tenants.members.actor import Actor
from tenants.usage.live import Minute, last_minute

ENDED: Final = 4401  # live.js knows it: asking again would not help
BUSY: Final = 1013  # try again later
CHECK_EVERY_S: Final = 60.0
_MAX_SEND_S: Final = 5.0
# Each holds a connection to Postgres while it asks.
_THREADS: Final = ThreadPoolExecutor(4, thread_name_prefix="live")
Message = dict[str, Any]
_P = ParamSpec("_P")
_Found = TypeVar("_Found")


async def _read(actor: Actor) -> Minute:
    return await _in_a_thread(last_minute)(actor=actor, now=timezone.now())


def _in_a_thread(ask: Callable[_P, _Found]) -> Callable[_P, Awaitable[_Found]]:
    """Of our own, beside those of pages: by itself, asgiref has one thread for all sockets, and one
    slow statement would hold up everybody's."""
    # Channels has no types.
    asked: Callable[_P, Awaitable[_Found]] = database_sync_to_async(
        ask, thread_sensitive=False, executor=_THREADS
    )
    return asked


class LiveConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types
    board: Board[Minute] = Board(_read)  # of the process

    def __init__(self) -> None:
        self._telling: asyncio.Task[None] | None = None

    async def websocket_connect(self, _message: Message) -> None:
        viewer = await self._viewer()
        if viewer is None:
            await self.send({"type": "websocket.close"})  # refused, with 403
            raise StopConsumer
        authenticate_connection(self.scope)
        await self.send({"type": "websocket.accept"})
        self._telling = asyncio.create_task(self._tell(viewer))

    async def websocket_receive(self, _message: Message) -> None:
        """Nothing is asked of us here."""

    async def websocket_disconnect(self, _message: Message) -> None:
        if self._telling is not None:
            self._telling.cancel()
        raise StopConsumer

    async def _tell(self, viewer: Viewer) -> None:
        try:
            with self.board.looking(viewer.actor) as readings:
                checked_at = monotonic()
                async for minute in readings:
                    if monotonic() - checked_at >= CHECK_EVERY_S:
                        found = await self._viewer()
                        # Another tenant or role has other figures: the page comes back for them.
                        if found is None or _sees(found) != _sees(viewer):
                            await self._close(ENDED)
                            return
                        viewer, checked_at = found, monotonic()
                    await self._send(_text(minute, viewer))
        except Full:
            await self._close(BUSY)
        except DatabaseFailed:
            await self._close(BUSY)
        except (OSError, RuntimeError, TimeoutError):
            return  # the socket is gone, or its client does not read

    async def _viewer(self) -> Viewer | None:
        return await _in_a_thread(viewer_of)(self.scope)

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(_MAX_SEND_S):
            await self.send({"type": "websocket.send", "text": text})

    async def _close(self, code: int) -> None:
        with suppress(OSError, RuntimeError):
            await self.send({"type": "websocket.close", "code": code})


def _sees(viewer: Viewer) -> tuple[str, str]:
    return viewer.actor.tenant_id, viewer.actor.authority


def _text(minute: Minute, viewer: Viewer) -> str:
    with translation.override(viewer.language), timezone.override(ZoneInfo(viewer.zone)):
        return json.dumps(said(minute, viewer.actor))
