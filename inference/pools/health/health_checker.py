"""Active health checks: every replica is checked periodically, in the background."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from inference.pools.health.replica_states import HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica

_PAUSE_S: Final = 2.0  # between two rounds of checks
MAX_CHECK_S: Final = 1.0  # of one replica


class HealthCheck(Protocol):
    async def check(self, replica: Replica) -> HealthStatus:
        """Return the health of a replica.

        The caller sets the timeout. Only CancelledError may be raised.
        """


class HealthChecker:
    def __init__(
        self,
        health_check: HealthCheck,
        replicas: ReplicaStates,
        list_replicas: Callable[[], Iterable[Replica]],
    ) -> None:
        """`list_replicas` returns the current replicas. It is called in each round."""
        self._health_check = health_check
        self._replicas = replicas
        self._list_replicas = list_replicas

    async def run(self) -> None:
        """Check all replicas periodically until cancelled."""
        while True:
            await self.check_all()
            await asyncio.sleep(_PAUSE_S)

    async def check_all(self) -> None:
        """Check all replicas once, concurrently."""
        async with asyncio.TaskGroup() as group:
            for replica in self._list_replicas():
                group.create_task(self._check_replica(replica))

    async def _check_replica(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(MAX_CHECK_S):
                status = await self._health_check.check(replica)
        except TimeoutError:
            status = HealthStatus.TIMED_OUT
        self._replicas.on_health_check(replica, status)
