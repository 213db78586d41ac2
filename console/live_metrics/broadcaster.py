"""Reads the figures of a tenant or user once for all their viewers, every two seconds."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import structlog
from django.db import DatabaseError

from caret.foundation.ids import TenantId, UserId
from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor

EVERY_S: Final = 2.0
# Limits of sockets in this process. Without a socket, a page keeps its first figures.
MAX_OF_TENANT: Final = 20
MAX_SOCKETS_OF_USER: Final = 5  # leaves sockets for the other users of the tenant
MAX_IN_ALL: Final = 500
logger = structlog.get_logger(__name__)

# The tenant and the user whose usage is read; None: all users of the tenant.
_Subject = tuple[TenantId, UserId | None]
# The tenant and the user who has sockets open.
_Viewer = tuple[TenantId, UserId | None]
_Reading = TypeVar("_Reading")
_Counted = TypeVar("_Counted", bound=Hashable)


class TooManyViewers(Exception):
    """A limit of open sockets is reached."""


@dataclass(slots=True, eq=False)
class _Subscription(Generic[_Reading]):
    """The shared figures of one subject."""

    # Notified of each new `latest`.
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    latest: _Reading | None = None  # None: nothing was read yet
    num_read: int = 0  # readings so far
    num_sockets: int = 0  # a viewer can have several
    reader: asyncio.Task[None] | None = None


class LiveBroadcaster(Generic[_Reading]):
    def __init__(
        self,
        read_metrics: Callable[[Actor], Awaitable[_Reading]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`read_metrics` returns the figures that an actor may see. Tests replace `sleep`."""
        self._read_metrics = read_metrics
        self._sleep = sleep
        self._subscriptions: dict[_Subject, _Subscription[_Reading]] = {}
        self._num_by_tenant = Counter[TenantId]()
        self._num_by_viewer = Counter[_Viewer]()

    @contextmanager
    def subscribe(self, actor: Actor) -> Iterator[AsyncIterator[_Reading]]:
        """Yield an iterator over the readings. A slow viewer gets only the newest one.

        Raises TooManyViewers.
        """
        subject = _subject_of(actor)
        viewer = (actor.tenant_id, actor.user_id)
        self._require_capacity(viewer)
        self._num_by_tenant[actor.tenant_id] += 1
        self._num_by_viewer[viewer] += 1
        subscription = self._subscriptions.setdefault(subject, _Subscription())
        subscription.num_sockets += 1
        if subscription.reader is None:
            subscription.reader = asyncio.create_task(self._poll_forever(actor, subscription))
        try:
            yield _iterate_readings(subscription)
        finally:
            _decrement(self._num_by_tenant, actor.tenant_id)
            _decrement(self._num_by_viewer, viewer)
            self._unsubscribe(subject, subscription)

    def _require_capacity(self, viewer: _Viewer) -> None:
        """Raise TooManyViewers if a limit is reached."""
        tenant_id, _user_id = viewer
        is_full = (
            self._num_by_viewer[viewer] >= MAX_SOCKETS_OF_USER
            or self._num_by_tenant[tenant_id] >= MAX_OF_TENANT
            or self._num_by_tenant.total() >= MAX_IN_ALL
        )
        if is_full:
            raise TooManyViewers

    def _unsubscribe(self, subject: _Subject, subscription: _Subscription[_Reading]) -> None:
        subscription.num_sockets -= 1
        if subscription.num_sockets == 0:
            assert subscription.reader is not None
            subscription.reader.cancel()
            del self._subscriptions[subject]

    async def _poll_forever(self, actor: Actor, subscription: _Subscription[_Reading]) -> None:
        """Read the figures every EVERY_S, with the permissions of the first viewer.

        All viewers of a subject may see the same figures. Runs until it is cancelled, which happens
        when the last socket is closed.
        """
        while True:
            try:
                latest = await self._read_metrics(actor)
            # Pages keep their figures, and the next reading may succeed.
            except DatabaseError as error:
                logger.warning(
                    "live.read_failed", tenant_id=actor.tenant_id, error=type(error).__name__
                )
            except Exception:  # a bug: without the task, viewers would wait forever
                logger.exception("live.read_failed", tenant_id=actor.tenant_id)
            else:
                async with subscription.changed:
                    subscription.latest = latest
                    subscription.num_read += 1
                    subscription.changed.notify_all()
            await self._sleep(EVERY_S)


def _subject_of(actor: Actor) -> _Subject:
    """Return the tenant, or only the actor if they may not see the usage of the tenant."""
    return actor.tenant_id, None if actor.has_permission(Permission.READ_USAGE) else actor.user_id


def _decrement(counter: Counter[_Counted], key: _Counted) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


async def _iterate_readings(subscription: _Subscription[_Reading]) -> AsyncIterator[_Reading]:
    num_seen = 0
    while True:
        async with subscription.changed:
            while subscription.num_read == num_seen:
                await subscription.changed.wait()
            latest, num_seen = subscription.latest, subscription.num_read
        assert latest is not None
        yield latest
