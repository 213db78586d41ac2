"""route: a prompt goes to the replica that most likely holds its prefix.

Rendezvous hashing (Thaler and Ravishankar 1998) of (namespace, repository, path) over the pool's
replicas: when one is lost only its share moves, and comes back with it. A pool of which no replica
is well is asked all the same: trying is how it is found to be back.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import Admitted
from inference.context.prompt import Prompt
from inference.pools.catalog import Pool, Pools, Replica
from inference.pools.engine import EngineRequest
from inference.pools.health import Health
from inference.prefix_cache.namespace import Namespaces

_PRIORITIES: Final = {
    Mode.INLINE: 0,
    Mode.FIM: 1,
    Mode.BLOCK: 2,
    Mode.DOCSTRING: 2,
    Mode.CHAT: 3,
}


class Router:
    """What routing knows besides the request."""

    def __init__(self, *, pools: Pools, namespaces: Namespaces, health: Health) -> None:
        self.pools = pools
        self.namespaces = namespaces
        self.health = health
        self.num_under_way: Counter[str] = Counter()  # by the replica's address


@contextmanager
def route(router: Router, admitted: Admitted, prompt: Prompt) -> Iterator[EngineRequest]:
    """The request counts as under way at its replica until the context is left."""
    asked = _choose(router, router.pools.by_name[admitted.pool], admitted, prompt)
    router.num_under_way[asked.replica.url] += 1
    try:
        yield asked
    finally:
        router.num_under_way[asked.replica.url] -= 1


def _choose(router: Router, pool: Pool, admitted: Admitted, prompt: Prompt) -> EngineRequest:
    request = admitted.request
    salt = router.namespaces.salt(admitted.principal)
    affinity = f"{salt}|{request.repository}|{request.path}"
    well = [replica for replica in pool.replicas if not router.health.is_resting(replica)]
    replica = max(well or pool.replicas, key=lambda replica: _score(affinity, replica))
    return EngineRequest(
        pool=pool,
        replica=replica,
        token_ids=prompt.token_ids,
        stop_token_ids=prompt.stop_token_ids,
        stop=(*request.stop, "\n") if prompt.is_single_line else request.stop,
        max_tokens=request.max_tokens,
        salt=salt,
        priority=_PRIORITIES[request.mode],
        num_at_replica=router.num_under_way[replica.url],
    )


def _score(affinity: str, replica: Replica) -> bytes:
    return hashlib.blake2b(f"{affinity}|{replica.url}".encode("utf-8", "replace")).digest()
