"""Looks for requests that wait in vain at a replica that is late: another is asked instead.

One task looks at all of them, so that a request that is answered in time pays for no timer.
"""

import asyncio
from typing import Final

from inference.pools.health.replica_states import ReplicaStates

LOOK_EVERY_S: Final = 0.05  # an eighth of the time after which anything is late


async def reroute_overdue(replicas: ReplicaStates, *, every_s: float = LOOK_EVERY_S) -> None:
    """Runs until cancelled."""
    while True:
        replicas.reroute_overdue()
        await asyncio.sleep(every_s)
