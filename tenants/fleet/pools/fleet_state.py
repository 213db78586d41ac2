"""Operators' settings for gateways, in Redis.

They are read as a whole and changed one field at a time, only if nothing has changed since.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import redis

from caret.contracts.fleet_state import CHANGE_SCRIPT, LOG_LENGTH
from tenants.base.errors import Conflict

MAX_SHOWN: Final = 20


class RedisUnavailable(Conflict):
    code = "unavailable"


@dataclass(frozen=True, slots=True)
class FleetState:
    version: str  # the version in Redis; "0": nothing was ever set
    held: dict[str, bytes]
    latest: list[bytes]  # changes, newest first, at most MAX_SHOWN


@dataclass(frozen=True, slots=True)
class FleetStateStore:
    """One kind of setting, with the names of its keys in Redis."""

    held: str
    version: str
    log: str
    channel: str

    def read(self, connection: redis.Redis) -> FleetState:
        """Read all fields and the latest changes. Raises RedisUnavailable."""
        try:
            pipeline = connection.pipeline(transaction=True)
            pipeline.get(self.version)
            pipeline.hgetall(self.held)
            pipeline.lrange(self.log, 0, MAX_SHOWN - 1)
            version, held, latest = cast(Any, pipeline.execute())
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis is not available, so the state of the gateways is unknown."
            ) from error
        return FleetState(
            version=(version or b"0").decode("utf-8", "replace"),
            held={name.decode("utf-8", "replace"): data for name, data in held.items()},
            latest=latest,
        )

    def set_entry(
        self, connection: redis.Redis, field: str, data: bytes, *, is_set: bool, version: str
    ) -> None:
        """Change a field, if `version` is still the newest. Raises Conflict, RedisUnavailable."""
        arguments: tuple[Any, ...] = (version, field, data, int(is_set), LOG_LENGTH, self.channel)
        keys = (self.held, self.version, self.log)
        try:
            done = connection.eval(CHANGE_SCRIPT, len(keys), *keys, *arguments)
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis did not respond, so the change may not be saved. Reload to check."
            ) from error
        if not done:
            raise Conflict("Another operator changed this at the same time. Reload and try again.")
