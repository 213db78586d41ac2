"""`/live`: a WebSocket that sends the figures of the last minute as the page shows them.

1. Authenticate the viewer, and accept or reject the socket.
2. Send the figures every two seconds. Check the viewer's access after each change.
3. When the session ends or the viewer's access changes, close the socket.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from channels.consumer import AsyncConsumer
from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from django.db import Error as DatabaseFailed
from django.utils import timezone, translation

from caret.foundation.web.connections import mark_connection_authenticated
from console.live_metrics.access_feed import AccessFeed
from console.live_metrics.authentication import Viewer, authenticate_viewer
from console.live_metrics.broadcaster import LiveBroadcaster, TooManyViewers
from console.usage_filters.last_minute import format_last_minute
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.last_minute import LastMinute, read_last_minute

# Close codes.
ENDED: Final = 4401  # live_metrics.js asks the user to reload the page
BUSY: Final = 1013  # live_metrics.js connects again later
# The access is checked at least this often, because a notification may be missed.
CHECK_EVERY_S: Final = 60.0
_PAUSE_S: Final = 0.3  # between two checks, if notifications arrive constantly
_MAX_SEND_S: Final = 5.0  # for one message
# Each of these threads occupies a connection to Postgres during a query.
_THREADS: Final = ThreadPoolExecutor(4, thread_name_prefix="live")
Message = dict[str, Any]
_P = ParamSpec("_P")
_ResultT = TypeVar("_ResultT")


async def _read_last_minute(actor: Actor) -> LastMinute:
    return await _run_in_thread(read_last_minute)(actor=actor, now=timezone.now())


def _run_in_thread(query: Callable[_P, _ResultT]) -> Callable[_P, Awaitable[_ResultT]]:
    """Return an async function that runs the query in one of our own threads.

    By default, asgiref has one thread for all sockets, so a slow query would delay all of them.
    """
    # Channels has no types.
    run_in_thread: Callable[_P, Awaitable[_ResultT]] = database_sync_to_async(
        query, thread_sensitive=False, executor=_THREADS
    )
    return run_in_thread


class LiveConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types
    # Shared by all sockets of the process.
    broadcaster: LiveBroadcaster[LastMinute] = LiveBroadcaster(_read_last_minute)
    feed = AccessFeed()

    def __init__(self) -> None:
        self._serving: asyncio.Task[None] | None = None

    async def websocket_connect(self, _message: Message) -> None:
        viewer = await self._find_viewer()
        if viewer is None:
            await self.send({"type": "websocket.close"})  # refused, with 403
            raise StopConsumer
        mark_connection_authenticated(self.scope)
        await self.send({"type": "websocket.accept"})
        self._serving = asyncio.create_task(self._serve(viewer))

    async def websocket_receive(self, _message: Message) -> None:
        """Ignore the message: clients have nothing to send."""

    async def websocket_disconnect(self, _message: Message) -> None:
        if self._serving is not None:
            self._serving.cancel()
        raise StopConsumer

    async def _serve(self, viewer: Viewer) -> None:
        """Send figures until the session ends or the access changes, then close the socket."""
        ids = viewer.session_key, str(viewer.actor.user_id), viewer.actor.tenant_id
        try:
            with (
                self.broadcaster.subscribe(viewer.actor) as readings,
                self.feed.watch(*ids) as change_event,
            ):
                await _wait_for_first(
                    self._send_readings(readings, viewer),
                    self._wait_until_ended(change_event, viewer),
                )
            await self._close(ENDED)
        except (TooManyViewers, DatabaseFailed):
            await self._close(BUSY)
        except (OSError, RuntimeError, TimeoutError):
            return  # the socket is already closed, or the client does not read

    async def _send_readings(self, readings: AsyncIterator[LastMinute], viewer: Viewer) -> None:
        async for minute in readings:
            await self._send(_render_message(minute, viewer))

    async def _wait_until_ended(self, change_event: asyncio.Event, viewer: Viewer) -> None:
        """Return when the session has ended, or the viewer's access has changed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY_S):
                    await change_event.wait()
            change_event.clear()
            current_viewer = await self._find_viewer()
            if current_viewer is None or _access_of(current_viewer) != _access_of(viewer):
                return
            await asyncio.sleep(_PAUSE_S)

    async def _find_viewer(self) -> Viewer | None:
        return await _run_in_thread(authenticate_viewer)(self.scope)

    async def _send(self, text: str) -> None:
        async with asyncio.timeout(_MAX_SEND_S):
            await self.send({"type": "websocket.send", "text": text})

    async def _close(self, code: int) -> None:
        with suppress(OSError, RuntimeError):
            async with asyncio.timeout(_MAX_SEND_S):
                await self.send({"type": "websocket.close", "code": code})


async def _wait_for_first(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Wait until one of the coroutines returns or raises. Cancel the others.

    Raises the exception of the coroutine that ended first.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _access_of(viewer: Viewer) -> tuple[str, str, str]:
    """Return the values that decide what the viewer may see."""
    return viewer.actor.tenant_id, viewer.actor.authority, viewer.status


def _render_message(minute: LastMinute, viewer: Viewer) -> str:
    with translation.override(viewer.language), timezone.override(ZoneInfo(viewer.zone)):
        return json.dumps(format_last_minute(minute, viewer.actor))
