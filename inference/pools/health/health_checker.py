"""Active health checks: every replica is probed periodically, in the background."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from inference.pools.health.replica_states import HealthStatus, ReplicaStates
from inference.pools.pool_config import Replica

PROBE_EVERY_S: Final = 2.0
MAX_PROBE_S: Final = 1.0


class HealthCheck(Protocol):
    async def ask(self, replica: Replica) -> HealthStatus:
        """Return the health of a replica.

        The caller sets the timeout. Only CancelledError may be raised.
        """


class HealthChecker:
    def __init__(
        self, probe: HealthCheck, replicas: ReplicaStates, every: Callable[[], Iterable[Replica]]
    ) -> None:
        """`every` returns the current replicas; called in each round."""
        self._probe = probe
        self._replicas = replicas
        self._every = every

    async def run(self) -> None:
        while True:
            await self.round()
            await asyncio.sleep(PROBE_EVERY_S)

    async def round(self) -> None:
        """Check all replicas at once."""
        async with asyncio.TaskGroup() as group:
            for replica in self._every():
                group.create_task(self._ask(replica))

    async def _ask(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(MAX_PROBE_S):
                wellness = await self._probe.ask(replica)
        except TimeoutError:
            wellness = HealthStatus.SILENT
        self._replicas.probed(replica, wellness)
