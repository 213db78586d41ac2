"""Consistent hashing with bounded load: ranks the replicas for a key. Pure.

Rendezvous scores (Thaler and Ravishankar 1998) rank the replicas for each key. If a replica is
lost, only its share of keys moves, to many others, and returns with it. The load bound is that of
Mirrokni, Thorup and Zadimoghaddam 2016 (arXiv 1608.01350): no replica gets more than CAPACITY times
the mean. Excess requests go to the key's next replica, which then caches the prefix for the next
time.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from inference.pools.pool_config import Replica

CAPACITY: Final = 1.25  # times the mean number of requests in flight
# Fewer requests than this never move a request away from its prefix: prefilling 2,000 tokens again
# costs more than waiting behind so many cached requests.
ALWAYS_ROOM: Final = 8
# In tokens: one prefill chunk of the engine that we start. For a smaller gain, a second copy of the
# prefix is not worthwhile.
CLEARLY_MORE: Final = 128


def rank_by_hash(key: str, replicas: Sequence[Replica]) -> list[Replica]:
    """Return all replicas, best first. Takes about a microsecond per replica."""
    return sorted(replicas, key=lambda replica: _compute_score(key, replica), reverse=True)


def filter_with_capacity(
    candidates: Sequence[Replica], num_in_flight: Callable[[Replica], int]
) -> tuple[Replica, ...]:
    """Return the replicas that may get one more request, in the same order; at least one."""
    total = sum(map(num_in_flight, candidates)) + 1
    max_in_flight = max(ALWAYS_ROOM, math.ceil(CAPACITY * total / len(candidates)))
    return tuple(replica for replica in candidates if num_in_flight(replica) < max_in_flight)


def prefer_cached(replicas: Sequence[Replica], cached: Mapping[str, int]) -> tuple[Replica, ...]:
    """Move the replica that has clearly more of the prompt in its cache to the front.

    `cached` has tokens by address, without replicas that do not publish events.
    """
    first = replicas[0]
    reporting = [replica for replica in replicas if replica.url in cached]
    if first.url not in cached:
        return tuple(replicas)
    best = max(reporting, key=lambda replica: cached[replica.url])
    if cached[best.url] - cached[first.url] < CLEARLY_MORE:
        return tuple(replicas)
    return (best, *(replica for replica in replicas if replica is not best))


def _compute_score(key: str, replica: Replica) -> bytes:
    text = f"{key}|{replica.url}".encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=16).digest()
