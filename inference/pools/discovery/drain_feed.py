"""Follows which replicas operators have drained."""

from typing import Any, cast

from redis.asyncio import Redis

from caret.contracts.drained_replicas import DRAINS, DRAINS_CHANGED, DRAINS_VERSION
from inference.pools.discovery.fleet_state_feed import SteeringFeed
from inference.pools.health.replica_states import ReplicaStates


class DrainFeed(SteeringFeed):
    name = "drains"
    version = DRAINS_VERSION
    channel = DRAINS_CHANGED

    def __init__(self, redis: Redis, replicas: ReplicaStates) -> None:
        super().__init__(redis)
        self._replicas = replicas

    async def apply_state(self) -> None:
        names = cast("list[bytes]", await cast(Any, self._redis.hkeys(DRAINS)))
        self._replicas.set_drained(name.decode("utf-8", "replace") for name in names)
