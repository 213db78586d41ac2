"""What operators say to gateways, in Redis: read whole, changed one field at a time, and only if
nobody else has changed anything since."""

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
    version: str  # as Redis has it; "0": nothing was ever said
    held: dict[str, bytes]
    latest: list[bytes]  # changes, newest first, MAX_SHOWN at most


@dataclass(frozen=True, slots=True)
class FleetStateStore:
    """Of one kind; the names of its keys."""

    held: str
    version: str
    log: str
    channel: str

    def read(self, connection: redis.Redis) -> FleetState:
        """Raises Unavailable."""
        try:
            pipeline = connection.pipeline(transaction=True)
            pipeline.get(self.version)
            pipeline.hgetall(self.held)
            pipeline.lrange(self.log, 0, MAX_SHOWN - 1)
            version, held, latest = cast(Any, pipeline.execute())
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis does not answer: what gateways know is not known."
            ) from error
        return FleetState(
            version=(version or b"0").decode("utf-8", "replace"),
            held={name.decode("utf-8", "replace"): data for name, data in held.items()},
            latest=latest,
        )

    def change(
        self, connection: redis.Redis, field: str, data: bytes, *, is_set: bool, version: str
    ) -> None:
        """`version`: that was read. Raises Conflict when there is a newer one, and Unavailable."""
        arguments: tuple[Any, ...] = (version, field, data, int(is_set), LOG_LENGTH, self.channel)
        keys = (self.held, self.version, self.log)
        try:
            done = connection.eval(CHANGE_SCRIPT, len(keys), *keys, *arguments)
        except redis.RedisError as error:
            raise RedisUnavailable(
                "Redis does not answer: nothing is changed, or nobody knows."
            ) from error
        if not done:
            raise Conflict("Another operator changed this at the same time. Reload and try again.")
