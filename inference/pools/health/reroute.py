"""Moves requests that wait at a late replica to another one.

One task checks all requests, so that timely requests do not pay for a timer.
"""

import asyncio
from typing import Final

from inference.pools.health.replica_states import ReplicaStates

LOOK_EVERY_S: Final = 0.05  # an eighth of the shortest time after which a first token is late


async def reroute_overdue(replicas: ReplicaStates, *, every_s: float = LOOK_EVERY_S) -> None:
    """Move overdue requests until cancelled."""
    while True:
        replicas.reroute_overdue()
        await asyncio.sleep(every_s)
