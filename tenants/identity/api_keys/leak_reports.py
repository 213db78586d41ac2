"""Keys that somebody has found where they should not be: what is reported, until a worker has seen
to it.

A report waits in a list in Redis as digests: no text of a key is kept, and who reports learns
nothing by how long it takes, since nothing is looked up before he has his answer.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec
import redis

from caret.contracts.api_key import KEY_PATTERN, parse_key
from caret.foundation.ids import LookupId
from tenants.base.errors import Conflict
from tenants.identity.api_keys.digest import key_digest
from tenants.identity.api_keys.row_writes import PEPPER_VERSION

SIGHTINGS: Final = "caret:keys:leak-reports"
MAX_WAITING: Final = 10_000
MAX_OF_A_REPORT: Final = 200
_MAX_PLACE_CHARS: Final = 300
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_ANY_KEY: Final = re.compile(KEY_PATTERN.pattern)


class LeakReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lookup_id: LookupId
    digests: tuple[bytes, ...]  # under each version of the pepper, the first one's first
    place: str  # where it was found, as the reporter says; "" when he does not


def find_keys_in(texts: Iterable[str], *, place: str) -> list[LeakReport]:
    """Each well-formed key in the texts, once; MAX_OF_A_REPORT at most."""
    keys = (parse_key(match[0]) for text in texts for match in _ANY_KEY.finditer(text))
    known = {key.text: key for key in keys if key is not None}
    versions = range(1, PEPPER_VERSION + 1)
    return [
        LeakReport(
            lookup_id=key.lookup_id,
            digests=tuple(key_digest(key, pepper_version=version) for version in versions),
            place=_place(place),
        )
        for key in list(known.values())[:MAX_OF_A_REPORT]
    ]


def enqueue(connection: redis.Redis, sightings: list[LeakReport]) -> None:
    """Raises redis.RedisError, and Conflict when too many wait."""
    if sightings and int(connection.llen(SIGHTINGS)) > MAX_WAITING:
        raise Conflict("Too many reports are waiting. Try again in a minute.")
    if sightings:
        connection.rpush(SIGHTINGS, *map(msgspec.msgpack.encode, sightings))


def peek(connection: redis.Redis, *, limit: int) -> list[bytes]:
    found: list[bytes] = connection.lrange(SIGHTINGS, 0, limit - 1)  # type: ignore[assignment]
    return found


def settle(connection: redis.Redis, data: bytes) -> None:
    connection.lrem(SIGHTINGS, 1, data)  # type: ignore[arg-type]  # its stubs want text


def requeue(connection: redis.Redis, data: bytes) -> None:
    """Behind all others."""
    pipeline = connection.pipeline(transaction=True)
    pipeline.rpush(SIGHTINGS, data)
    pipeline.lrem(SIGHTINGS, 1, data)  # type: ignore[arg-type]
    pipeline.execute()


def read_sighting(data: bytes) -> LeakReport:
    """Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=LeakReport)


def _place(text: str) -> str:
    """Never with the key itself in it: an address may have it as a parameter."""
    return _UNPRINTABLE.sub(" ", _ANY_KEY.sub("cpk_...", text))[:_MAX_PLACE_CHARS]
