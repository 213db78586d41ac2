"""The route stage: choose the replica that most likely has the prefix cached and has capacity.

If no replica of a pool is available, one is used nevertheless, so that a recovery is noticed.
"""

import hashlib
from array import array
from collections.abc import Mapping
from typing import Final

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.ids import CacheSalt
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.context.prompt.prompt import Prompt
from inference.errors import CompletionDropped
from inference.pools.engine import MAX_COMPLETION_S, EngineRequest
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import PoolConfig, Replica
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.prefix_cache.cache_index import PrefixCacheIndex
from inference.prefix_cache.namespace import CacheNamespaces
from inference.routing.consistent_hashing import filter_with_capacity, prefer_cached, rank_by_hash

# In the engine's queue. Lower numbers come first.
_PRIORITIES: Final = {
    Mode.INLINE: 0,
    Mode.FIM: 1,
    Mode.BLOCK: 2,
    Mode.DOCSTRING: 2,
    Mode.CHAT: 3,
    Mode.EDIT: 3,  # the editor requests it, not the user
}
_LAST: Final = 4  # for warm-ups
# Requests without a path prefer the same replica if this many first tokens of their prompts are
# equal. These are a few lines of code, and twice the largest default block size of engines.
_HEAD_TOKENS: Final = 64
_MAX_RETRIES: Final = 1  # at other replicas; a user does not wait for more
# A first token is late after this many times the mode's latency target: 0.4 s for inline. On a GPU,
# a cold prompt of 6,000 tokens takes half of this time.
LATE_TARGETS: Final = 5
# The longest response of a chat takes 40 s at 100 tokens a second. Users see it while it is
# generated, so they also wait for slower engines.
MAX_CHAT_S: Final = 300.0


class Router:
    """The state that routing needs besides the request."""

    def __init__(
        self,
        *,
        pools: PoolConfig,
        namespaces: CacheNamespaces,
        replicas: ReplicaStates,
        index: PrefixCacheIndex,
        speculation: SpeculationTracker,
        targets_ms: Mapping[Mode, float],
    ) -> None:
        """`targets_ms` are the latency targets of the first token."""
        self.pools = pools
        self.namespaces = namespaces
        self.replicas = replicas
        self.index = index
        self.speculation = speculation
        self.targets_ms = targets_ms


def route(router: Router, admitted: AdmittedRequest, prompt: Prompt) -> EngineRequest:
    """Return the request to the engine.

    Raises CompletionDropped (`shed`) if a warm-up's replica is busy, if all replicas of the pool
    are draining, or if the pool has no replicas.
    """
    request, pool = admitted.request, router.pools.by_name[admitted.pool]
    salt = router.namespaces.derive_salt(admitted.principal)
    replica, *fallbacks = _choose_replicas(router, admitted, prompt, salt=salt)
    num_in_flight = router.replicas.num_in_flight(replica)
    if request.is_warm_up and num_in_flight:
        raise CompletionDropped(FinishReason.SHED)
    return EngineRequest(
        pool=pool,
        replica=replica,
        token_ids=prompt.token_ids,
        stop_token_ids=prompt.stop_token_ids,
        required_prefix=prompt.healed_prefix,
        stop=(*request.stop, "\n") if prompt.is_single_line else request.stop,
        max_tokens=_limit_max_tokens(request, prompt),
        salt=salt,
        priority=_LAST if request.is_warm_up else _PRIORITIES[request.mode],
        num_in_flight_at_replica=num_in_flight,
        first_token_timeout_s=LATE_TARGETS * router.targets_ms[request.mode] / 1000,
        fallback_replicas=() if request.is_warm_up else tuple(fallbacks),
        sampling=request.sampling,
        time_limits=request.time_limits,
        is_preemptible=request.is_warm_up,
        max_duration_s=MAX_CHAT_S if request.mode is Mode.CHAT else MAX_COMPLETION_S,
    )


def _limit_max_tokens(request: CompletionRequest, prompt: Prompt) -> int:
    if prompt.max_tokens is None:
        return request.max_tokens
    return min(request.max_tokens, prompt.max_tokens)


def _choose_replicas(
    router: Router, admitted: AdmittedRequest, prompt: Prompt, *, salt: CacheSalt
) -> tuple[Replica, ...]:
    """Return the replica to use first, then its fallbacks.

    Draining replicas are never used. A later step that would leave no replica is skipped. Raises
    CompletionDropped.
    """
    replicas = router.pools.by_name[admitted.pool].replicas
    undrained = [replica for replica in replicas if not router.replicas.is_drained(replica)]
    if not undrained:
        raise CompletionDropped(FinishReason.SHED)
    by_hash = rank_by_hash(_build_routing_key(salt, admitted.request, prompt), undrained)
    available = [replica for replica in by_hash if router.replicas.is_available(replica)] or by_hash
    fast = [
        replica for replica in available if not router.replicas.is_ejected(replica)
    ] or available
    with_capacity = filter_with_capacity(
        _drop_unprofitable_speculation(router, admitted, fast), router.replicas.num_in_flight
    )
    best_first = dict.fromkeys(
        (*_prefer_cached_replicas(router, with_capacity, salt, prompt), *available)
    )
    return tuple(best_first)[: 1 + _MAX_RETRIES]


def _drop_unprofitable_speculation(
    router: Router, admitted: AdmittedRequest, replicas: list[Replica]
) -> list[Replica]:
    """Drop speculating replicas if speculation is not profitable for the language.

    If no replica would remain, drop none.
    """
    if router.speculation.is_profitable(admitted.pool, admitted.request.language):
        return replicas
    return [replica for replica in replicas if replica.speculation is None] or replicas


def _prefer_cached_replicas(
    router: Router, replicas: tuple[Replica, ...], salt: CacheSalt, prompt: Prompt
) -> tuple[Replica, ...]:
    urls = [replica.url for replica in replicas if replica.kv_events is not None]
    if len(urls) < 2:  # nothing to compare: the prompt need not be hashed
        return replicas
    return prefer_cached(replicas, router.index.count_cached_tokens(urls, salt, prompt.token_ids))


def _build_routing_key(salt: CacheSalt, request: CompletionRequest, prompt: Prompt) -> str:
    """Return a routing key. Requests with the same key prefer the same replica.

    They belong to the same file. Without a path, they have prompts with the same first tokens.
    """
    if request.path:
        return f"{salt}|{request.repository}|{request.path}"
    head = array("I", prompt.token_ids[:_HEAD_TOKENS]).tobytes()
    return f"{salt}|{hashlib.blake2b(head, digest_size=16).hexdigest()}"
