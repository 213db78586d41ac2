"""Active health checks: every replica is probed periodically, in the background."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from inference.pools.health.replica_states import HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica

PROBE_EVERY_S: Final = 2.0
MAX_PROBE_S: Final = 1.0


class HealthCheck(Protocol):
    async def check(self, replica: Replica) -> HealthStatus:
        """Return the health of a replica.

        The caller sets the timeout. Only CancelledError may be raised.
        """


class HealthChecker:
    def __init__(
        self,
        probe: HealthCheck,
        replicas: ReplicaStates,
        list_replicas: Callable[[], Iterable[Replica]],
    ) -> None:
        """`list_replicas` returns the current replicas. It is called in each round."""
        self._probe = probe
        self._replicas = replicas
        self._list_replicas = list_replicas

    async def run(self) -> None:
        while True:
            await self.check_all()
            await asyncio.sleep(PROBE_EVERY_S)

    async def check_all(self) -> None:
        """Check all replicas at once."""
        async with asyncio.TaskGroup() as group:
            for replica in self._list_replicas():
                group.create_task(self._check_replica(replica))

    async def _check_replica(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(MAX_PROBE_S):
                status = await self._probe.check(replica)
        except TimeoutError:
            status = HealthStatus.TIMED_OUT
        self._replicas.on_health_check(replica, status)
