"""Operators' settings for gateways, in Redis.

Each kind of setting has a hash, the hash's version and a log of changes. The hash is read as a
whole. A change sets or deletes one field, and succeeds only if the version is still the one that
the caller has read. Gateways follow the changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import redis

from tenants.base.errors import Conflict

Record = TypeVar("Record")
MAX_SHOWN: Final = 20  # changes of the log that are read
LOG_LENGTH: Final = 200  # changes that the log keeps

# KEYS: hash, version, log. ARGV: the expected version, field, encoded change, 1 to set the field to
# the change or 0 to delete the field, log length, channel. Returns the new version, or 0 if the
# version is not the expected one.
CHANGE_SCRIPT: Final = """
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
else redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('LPUSH', KEYS[3], ARGV[3])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
local version = redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[6], version)
return version
"""


class RedisUnavailable(Conflict):
    """Redis did not answer. Raised by operations that read or change these settings."""

    code = "unavailable"


@dataclass(frozen=True, slots=True)
class FleetState:
    version: str  # the version in Redis; "0": nothing was ever set
    entries: dict[str, bytes]  # encoded changes, by field of the hash
    latest: list[bytes]  # encoded changes, newest first, at most MAX_SHOWN

    def decode(
        self, decode: Callable[[bytes], Record | None]
    ) -> tuple[dict[str, Record], list[Record]]:
        """Return the decoded entries, sorted by name, and the decoded latest changes.

        An entry or a change is left out if `decode` returns None.
        """
        entries = {
            name: record
            for name, data in sorted(self.entries.items())
            if (record := decode(data)) is not None
        }
        return entries, [record for data in self.latest if (record := decode(data)) is not None]


@dataclass(frozen=True, slots=True)
class FleetStateStore:
    """One kind of setting, with the names of its Redis keys and of its channel."""

    entries_key: str  # of the hash
    version_key: str
    log_key: str
    channel: str  # gets the new version after each change

    def read(self, connection: redis.Redis) -> FleetState:
        """Read all fields and the latest changes. Raises RedisUnavailable."""
        try:
            pipeline = connection.pipeline(transaction=True)
            pipeline.get(self.version_key)
            pipeline.hgetall(self.entries_key)
            pipeline.lrange(self.log_key, 0, MAX_SHOWN - 1)
            version, entries, latest = cast(Any, pipeline.execute())
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis is not available, so the state of the gateways is unknown."
            ) from error
        return FleetState(
            version=(version or b"0").decode("utf-8", "replace"),
            entries={name.decode("utf-8", "replace"): data for name, data in entries.items()},
            latest=latest,
        )

    def change_entry(
        self, connection: redis.Redis, field: str, data: bytes, *, is_set: bool, version: str
    ) -> None:
        """Set a field to `data`, or delete it if `is_set` is False, and add `data` to the log.

        Raises RedisUnavailable, and Conflict if `version` is no longer the newest.
        """
        arguments: tuple[Any, ...] = (version, field, data, int(is_set), LOG_LENGTH, self.channel)
        keys = (self.entries_key, self.version_key, self.log_key)
        try:
            is_changed = connection.eval(CHANGE_SCRIPT, len(keys), *keys, *arguments)
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis did not respond, so the change may not be saved. Reload to check."
            ) from error
        if not is_changed:
            raise Conflict("Another operator made a change at the same time. Reload and try again.")
