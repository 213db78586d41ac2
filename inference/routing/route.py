"""route: a prompt goes to the replica that most likely holds its prefix.

Rendezvous hashing (Thaler and Ravishankar 1998) of (namespace, repository, path) over the pool's
replicas: when one is lost only its share moves, and comes back with it. A pool of which no replica
is well is asked all the same: trying is how it is found to be back.
"""

import hashlib
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import Admitted
from inference.context.prompt import Prompt
from inference.pools.catalog import Pool, Replica
from inference.pools.engine import EngineRequest
from inference.pools.health import Health
from inference.prefix_cache.namespace import Namespaces

_PRIORITIES: Final = {Mode.INLINE: 0, Mode.FIM: 1, Mode.BLOCK: 2, Mode.DOCSTRING: 2}


class Router:
    """What routing knows besides the request."""

    def __init__(self, *, namespaces: Namespaces, health: Health) -> None:
        self.namespaces = namespaces
        self.health = health


def route(router: Router, pool: Pool, admitted: Admitted, prompt: Prompt) -> EngineRequest:
    request = admitted.request
    salt = router.namespaces.salt(admitted.principal)
    affinity = f"{salt}|{request.repository}|{request.path}"
    well = [replica for replica in pool.replicas if not router.health.is_resting(replica)]
    return EngineRequest(
        pool=pool,
        replica=max(well or pool.replicas, key=lambda replica: _score(affinity, replica)),
        token_ids=prompt.token_ids,
        stop_token_ids=prompt.stop_token_ids,
        stop=(*request.stop, "\n") if prompt.is_single_line else request.stop,
        max_tokens=request.max_tokens,
        salt=salt,
        priority=_PRIORITIES[request.mode],
    )


def _score(affinity: str, replica: Replica) -> bytes:
    return hashlib.blake2b(f"{affinity}|{replica.url}".encode("utf-8", "replace")).digest()
