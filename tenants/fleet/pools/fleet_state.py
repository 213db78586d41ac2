"""Operators' settings for gateways, in Redis.

Each kind of setting has a hash, its version and a log of changes. The hash is read as a whole. A
change sets or deletes one field, and only if the version is the one that was read. Gateways follow
the changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import redis

from tenants.base.errors import Conflict

Record = TypeVar("Record")
MAX_SHOWN: Final = 20
LOG_LENGTH: Final = 200

# KEYS: hash, version, log. ARGV: the expected version, field, encoded change, 1 to set the field or
# 0 to delete it, log length, channel. Returns the new version, or 0 if the version has changed.
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
    code = "unavailable"


@dataclass(frozen=True, slots=True)
class FleetState:
    version: str  # the version in Redis; "0": nothing was ever set
    entries: dict[str, bytes]
    latest: list[bytes]  # changes, newest first, at most MAX_SHOWN

    def decode(
        self, decode: Callable[[bytes], Record | None]
    ) -> tuple[dict[str, Record], list[Record]]:
        """Return entries by sorted name, and changes. Drop those that `decode` turns into None."""
        entries = {
            name: record
            for name, data in sorted(self.entries.items())
            if (record := decode(data)) is not None
        }
        return entries, [record for data in self.latest if (record := decode(data)) is not None]


@dataclass(frozen=True, slots=True)
class FleetStateStore:
    """One kind of setting, with the names of its keys in Redis."""

    entries_key: str
    version: str
    log: str
    channel: str

    def read(self, connection: redis.Redis) -> FleetState:
        """Read all fields and the latest changes. Raises RedisUnavailable."""
        try:
            pipeline = connection.pipeline(transaction=True)
            pipeline.get(self.version)
            pipeline.hgetall(self.entries_key)
            pipeline.lrange(self.log, 0, MAX_SHOWN - 1)
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

    def set_entry(
        self, connection: redis.Redis, field: str, data: bytes, *, is_set: bool, version: str
    ) -> None:
        """Change a field, if `version` is still the newest. Raises Conflict, RedisUnavailable."""
        arguments: tuple[Any, ...] = (version, field, data, int(is_set), LOG_LENGTH, self.channel)
        keys = (self.entries_key, self.version, self.log)
        try:
            is_changed = connection.eval(CHANGE_SCRIPT, len(keys), *keys, *arguments)
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis did not respond, so the change may not be saved. Reload to check."
            ) from error
        if not is_changed:
            raise Conflict("Another operator made a change at the same time. Reload and try again.")
