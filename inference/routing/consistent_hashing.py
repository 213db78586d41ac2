"""Consistent hashing with bounded load: ranks the replicas for a routing key. Pure.

Rendezvous scores (Thaler and Ravishankar 1998) rank the replicas for each routing key. If a replica
is lost, only its routing keys move, each to the key's next replica, until the replica returns.

The load bound is that of Mirrokni, Thorup and Zadimoghaddam 2016 (arXiv 1608.01350): no replica
gets more than CAPACITY times the mean number of requests in flight, or MIN_CAPACITY if this is
more. Excess requests go to the routing key's next replica, which then also caches the prefix.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from inference.pools.pool_config import Replica

CAPACITY: Final = 1.25  # times the mean number of requests in flight
# A replica with fewer requests in flight always has capacity, because waiting for so few requests
# takes less time than prefilling 2,000 tokens again at another replica.
MIN_CAPACITY: Final = 8
# Another replica is preferred to the first one only if it has this many more cached tokens, because
# two replicas then cache the prefix. This is one prefill chunk of the local installation's engine.
MIN_GAIN_TOKENS: Final = 128


def rank_by_hash(routing_key: str, replicas: Sequence[Replica]) -> list[Replica]:
    """Return all replicas, best first. Takes about a microsecond per replica."""
    return sorted(replicas, key=lambda replica: _compute_score(routing_key, replica), reverse=True)


def filter_with_capacity(
    candidates: Sequence[Replica], num_in_flight: Callable[[Replica], int]
) -> tuple[Replica, ...]:
    """Return the replicas that may get one more request, in the same order; at least one."""
    total = sum(map(num_in_flight, candidates)) + 1
    max_in_flight = max(MIN_CAPACITY, math.ceil(CAPACITY * total / len(candidates)))
    return tuple(replica for replica in candidates if num_in_flight(replica) < max_in_flight)


def prefer_cached(replicas: Sequence[Replica], cached: Mapping[str, int]) -> tuple[Replica, ...]:
    """Move the replica with the most cached tokens of the prompt to the front.

    It must have at least MIN_GAIN_TOKENS more than the first replica. `cached`: the number of
    cached tokens by URL, for replicas that publish KV events. If the first replica publishes none,
    nothing changes.
    """
    first = replicas[0]
    if first.url not in cached:
        return tuple(replicas)
    publishers = [replica for replica in replicas if replica.url in cached]
    best = max(publishers, key=lambda replica: cached[replica.url])
    if cached[best.url] - cached[first.url] < MIN_GAIN_TOKENS:
        return tuple(replicas)
    return (best, *(replica for replica in replicas if replica is not best))


def _compute_score(routing_key: str, replica: Replica) -> bytes:
    text = f"{routing_key}|{replica.url}".encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=16).digest()
