"""What is read once for all who look at it, every two seconds while anybody does."""

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
MAX_OF_TENANT: Final = 20  # sockets; pages beyond them show what they were sent with
MAX_OF_PERSON: Final = 5  # of those: some tabs, and places for colleagues
MAX_IN_ALL: Final = 500  # of this process
logger = structlog.get_logger(__name__)

# A tenant's, or one person's own.
_Subject = tuple[TenantId, UserId | None]
_Reading = TypeVar("_Reading")
_Counted = TypeVar("_Counted", bound=Hashable)


class TooManyViewers(Exception):
    """Too many look already."""


@dataclass(slots=True, eq=False)
class _Subscription(Generic[_Reading]):
    """What somebody looks at."""

    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    latest: _Reading | None = None
    num_read: int = 0
    num_viewers: int = 0
    reader: asyncio.Task[None] | None = None


class LiveBroadcaster(Generic[_Reading]):
    def __init__(
        self,
        read: Callable[[Actor], Awaitable[_Reading]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._read = read
        self._sleep = sleep
        self._looked: dict[_Subject, _Subscription[_Reading]] = {}
        self._of_tenant = Counter[TenantId]()
        self._of_person = Counter[_Subject]()

    @contextmanager
    def subscribe(self, actor: Actor) -> Iterator[AsyncIterator[_Reading]]:
        """Each new reading, the newest where some were missed. Raises Full."""
        subject, person = _subject_of(actor), (actor.tenant_id, actor.user_id)
        self._require_capacity(person)
        self._of_tenant[actor.tenant_id] += 1
        self._of_person[person] += 1
        looked = self._looked.setdefault(subject, _Subscription())
        looked.num_viewers += 1
        if looked.reader is None:
            looked.reader = asyncio.create_task(self._poll_forever(actor, looked))
        try:
            yield _readings(looked)
        finally:
            _give_back(self._of_tenant, actor.tenant_id)
            _give_back(self._of_person, person)
            self._unsubscribe(subject, looked)

    def _require_capacity(self, person: _Subject) -> None:
        """Raises Full."""
        is_full = (
            self._of_person[person] >= MAX_OF_PERSON
            or self._of_tenant[person[0]] >= MAX_OF_TENANT
            or self._of_tenant.total() >= MAX_IN_ALL
        )
        if is_full:
            raise TooManyViewers

    def _unsubscribe(self, subject: _Subject, looked: _Subscription[_Reading]) -> None:
        looked.num_viewers -= 1
        if looked.num_viewers == 0:
            assert looked.reader is not None
            looked.reader.cancel()
            del self._looked[subject]

    async def _poll_forever(self, actor: Actor, looked: _Subscription[_Reading]) -> None:
        """As the first who looked: the others may see the same. Until it is cancelled, when nobody
        is left."""
        while True:
            try:
                latest = await self._read(actor)
            # The page keeps what it has, and the next may be read.
            except DatabaseError as error:
                logger.warning(
                    "live.not_read", tenant_id=actor.tenant_id, error=type(error).__name__
                )
            except Exception:  # of ours: nobody else would ever see it, and all would wait for ever
                logger.exception("live.not_read", tenant_id=actor.tenant_id)
            else:
                async with looked.changed:
                    looked.latest = latest
                    looked.num_read += 1
                    looked.changed.notify_all()
            await self._sleep(EVERY_S)


def _subject_of(actor: Actor) -> _Subject:
    return actor.tenant_id, None if actor.has_permission(Permission.READ_USAGE) else actor.user_id


def _give_back(counted: Counter[_Counted], who: _Counted) -> None:
    counted[who] -= 1
    if not counted[who]:
        del counted[who]


async def _readings(looked: _Subscription[_Reading]) -> AsyncIterator[_Reading]:
    num_seen = 0
    while True:
        async with looked.changed:
            while looked.num_read == num_seen:
                await looked.changed.wait()
            latest, num_seen = looked.latest, looked.num_read
        assert latest is not None
        yield latest
