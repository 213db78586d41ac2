"""Which replica a key belongs to: consistent hashing with bounded load. Pure.

Rendezvous scores (Thaler and Ravishankar 1998) order the replicas for each key: when one is lost
only its share moves, to many neighbours, and comes back with it. The load bound is that of
Mirrokni, Thorup and Zadimoghaddam 2016 (arXiv 1608.01350): no replica gets more than CAPACITY times
the mean; what it cannot take goes to the key's next one, where its prefix is found again the next
time that this happens.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from inference.pools.pool_config import Replica

CAPACITY: Final = 1.25  # times the mean of what is under way
# Fewer than these at once never send a request away from its prefix: to prefill 2,000 tokens anew
# costs more than to wait behind so many that are cached.
ALWAYS_ROOM: Final = 8
# Tokens; a prefill chunk of the engine that we start. A smaller gain is not worth the prefix's
# growing in two places.
CLEARLY_MORE: Final = 128


def rank_by_hash(key: str, replicas: Sequence[Replica]) -> list[Replica]:
    """All of them, the key's own first. It takes about a microsecond for each."""
    return sorted(replicas, key=lambda replica: _score(key, replica), reverse=True)


def filter_with_capacity(
    ranked: Sequence[Replica], num_under_way: Callable[[Replica], int]
) -> tuple[Replica, ...]:
    """Those within the bound for one request more, in the same order; at least one."""
    total = sum(map(num_under_way, ranked)) + 1
    bound = max(ALWAYS_ROOM, math.ceil(CAPACITY * total / len(ranked)))
    return tuple(replica for replica in ranked if num_under_way(replica) < bound)


def prefer_cached(preferred: Sequence[Replica], cached: Mapping[str, int]) -> tuple[Replica, ...]:
    """The one that is known to hold clearly more of the prompt goes first; the rest stays.

    `cached`: tokens by address, without the replicas that do not tell: of those the affinity is all
    that is known.
    """
    first = preferred[0]
    told = [replica for replica in preferred if replica.url in cached]
    if first.url not in cached:
        return tuple(preferred)
    best = max(told, key=lambda replica: cached[replica.url])
    if cached[best.url] - cached[first.url] < CLEARLY_MORE:
        return tuple(preferred)
    return (best, *(replica for replica in preferred if replica is not best))


def _score(key: str, replica: Replica) -> bytes:
    text = f"{key}|{replica.url}".encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=16).digest()
