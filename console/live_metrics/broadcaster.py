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
MAX_OF_TENANT: Final = 20  # sockets in this process; further pages keep their first figures
MAX_SOCKETS_OF_USER: Final = 5  # in this process; so that colleagues get sockets, too
MAX_IN_ALL: Final = 500  # in this process
logger = structlog.get_logger(__name__)

# The usage of a whole tenant, or of one user.
_Subject = tuple[TenantId, UserId | None]
_Reading = TypeVar("_Reading")
_Counted = TypeVar("_Counted", bound=Hashable)


class TooManyViewers(Exception):
    """Too many sockets are open."""


@dataclass(slots=True, eq=False)
class _Subscription(Generic[_Reading]):
    """The shared figures of one subject."""

    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    latest: _Reading | None = None
    num_read: int = 0
    num_viewers: int = 0
    reader: asyncio.Task[None] | None = None


class LiveBroadcaster(Generic[_Reading]):
    def __init__(
        self,
        read_metrics: Callable[[Actor], Awaitable[_Reading]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._read_metrics = read_metrics
        self._sleep = sleep
        self._subscriptions: dict[_Subject, _Subscription[_Reading]] = {}
        self._num_by_tenant = Counter[TenantId]()
        self._num_by_person = Counter[_Subject]()

    @contextmanager
    def subscribe(self, actor: Actor) -> Iterator[AsyncIterator[_Reading]]:
        """Yield an iterator of new readings; a slow viewer skips to the newest.

        Raises TooManyViewers.
        """
        subject, person = _subject_of(actor), (actor.tenant_id, actor.user_id)
        self._require_capacity(person)
        self._num_by_tenant[actor.tenant_id] += 1
        self._num_by_person[person] += 1
        subscription = self._subscriptions.setdefault(subject, _Subscription())
        subscription.num_viewers += 1
        if subscription.reader is None:
            subscription.reader = asyncio.create_task(self._poll_forever(actor, subscription))
        try:
            yield _iterate_readings(subscription)
        finally:
            _decrement(self._num_by_tenant, actor.tenant_id)
            _decrement(self._num_by_person, person)
            self._unsubscribe(subject, subscription)

    def _require_capacity(self, person: _Subject) -> None:
        """Raise TooManyViewers if a limit is reached."""
        is_full = (
            self._num_by_person[person] >= MAX_SOCKETS_OF_USER
            or self._num_by_tenant[person[0]] >= MAX_OF_TENANT
            or self._num_by_tenant.total() >= MAX_IN_ALL
        )
        if is_full:
            raise TooManyViewers

    def _unsubscribe(self, subject: _Subject, subscription: _Subscription[_Reading]) -> None:
        subscription.num_viewers -= 1
        if subscription.num_viewers == 0:
            assert subscription.reader is not None
            subscription.reader.cancel()
            del self._subscriptions[subject]

    async def _poll_forever(self, actor: Actor, subscription: _Subscription[_Reading]) -> None:
        """Read with the permissions of the first viewer.

        All viewers of a subject may see the same. Runs until it is cancelled, when the last viewer
        has left.
        """
        while True:
            try:
                latest = await self._read_metrics(actor)
            # The page keeps its figures, and the next reading may succeed.
            except DatabaseError as error:
                logger.warning(
                    "live.read_failed", tenant_id=actor.tenant_id, error=type(error).__name__
                )
            except Exception:  # a bug; if it ended the task, viewers would wait forever
                logger.exception("live.read_failed", tenant_id=actor.tenant_id)
            else:
                async with subscription.changed:
                    subscription.latest = latest
                    subscription.num_read += 1
                    subscription.changed.notify_all()
            await self._sleep(EVERY_S)


def _subject_of(actor: Actor) -> _Subject:
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
