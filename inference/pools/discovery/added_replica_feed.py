"""Follows which replicas operators have added to pools."""

from collections import defaultdict
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis

from caret.contracts.added_replicas import (
    ADDITIONS,
    ADDITIONS_CHANGED,
    ADDITIONS_VERSION,
    ReplicaChange,
    decode_addition,
)
from caret.foundation.environment import BadSetting
from inference.pools.cache_isolation import SpeculationMethod
from inference.pools.discovery.fleet_state_feed import SteeringFeed
from inference.pools.discovery.pool_members import PoolMembers
from inference.pools.pool_config import Replica, ReplicaEntry, replica_of

MAX_ADDITIONS: Final = 1_000
log = structlog.get_logger(__name__)


class AdditionFeed(SteeringFeed):
    name = "additions"
    version = ADDITIONS_VERSION
    channel = ADDITIONS_CHANGED

    def __init__(self, redis: Redis, membership: PoolMembers) -> None:
        super().__init__(redis)
        self._membership = membership

    async def apply_state(self) -> None:
        held = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(ADDITIONS)))
        added: defaultdict[str, list[Replica]] = defaultdict(list)
        for data in list(held.values())[:MAX_ADDITIONS]:
            try:
                addition = decode_addition(data)
                added[addition.pool].append(_replica(addition))
            # Of a newer version, or nobody of ours; the others are good.
            except (msgspec.DecodeError, BadSetting, ValueError) as error:
                log.warning("added_replica.invalid", error=str(error))
        self._membership.add(added)


def _replica(addition: ReplicaChange) -> Replica:
    """Raises BadSetting, and ValueError for a speculation that there is not."""
    entry = ReplicaEntry(
        url=addition.url,
        kv_events=addition.kv_events,
        speculation=None
        if addition.speculation is None
        else SpeculationMethod(addition.speculation),
    )
    return replica_of(entry, pool=addition.pool)
