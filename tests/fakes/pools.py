"""Pools and requests to them."""

from typing import Any, Final

from caret.contracts.policy import Mode, Tier
from caret.foundation.clock import Clock
from caret.foundation.ids import CacheSalt
from inference.gateway.admit import AdmissionController
from inference.gateway.experiments import ExperimentSet
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.load_shedding.load_shedder import LoadShedder, PoolCapacity
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.supersession.feed import ClaimQueue
from inference.gateway.supersession.registry import SupersessionRegistry
from inference.pools.engine import EngineRequest
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import Pool, PoolConfig, Replica
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.prefix_cache.cache_index import PrefixCacheIndex
from inference.prefix_cache.namespace import CacheNamespaces
from inference.routing.pool_selection import PoolSelector
from inference.routing.route import Router
from tests.fakes.clock import FakeClock
from tests.fakes.leases import make_quotas
from tests.fakes.tenants import ROOT_SECRET

REGION: Final = "local"
TARGET_MS: Final = 80.0  # of the first token
# Each mode has a different target.
TARGETS_MS: Final = {mode: TARGET_MS * number for number, mode in enumerate(Mode, start=1)}


def make_pool(*urls: str, tier: Tier = Tier.FAST) -> Pool:
    return Pool(
        name=f"demo-{tier}",
        tier=tier,
        model="demo",
        tokenizer="",
        max_context_tokens=4096,
        replicas=tuple(
            Replica(name=url.removeprefix("http://"), url=url)
            for url in urls or ("http://engine-1:8000",)
        ),
    )


def make_pools(*pools: Pool) -> PoolConfig:
    return PoolConfig(pools or [make_pool(tier=tier) for tier in Tier])


class SilentReader:
    """Reads nothing: the engine has no values at /metrics."""

    async def read(self, _replica: Replica) -> None:
        return None


def make_router(
    *pools: Pool, clock: FakeClock | None = None, speculation: SpeculationTracker | None = None
) -> Router:
    clock = clock or FakeClock()
    speculation = speculation or SpeculationTracker(
        make_pools(*pools), SilentReader(), clock, fallback_after_s=0, retry_after_s=3600
    )
    return Router(
        pools=make_pools(*pools),
        namespaces=CacheNamespaces(ROOT_SECRET),
        replicas=ReplicaStates(clock),
        index=PrefixCacheIndex(),
        speculation=speculation,
        targets_ms=TARGETS_MS,
    )


def make_admission(
    *pools: Pool,
    concurrency: ConcurrencyLimiter | None = None,
    quotas: Quotas | None = None,
    load: LoadShedder | None = None,
) -> AdmissionController:
    catalog = make_pools(*pools)
    return AdmissionController(
        supersession=SupersessionRegistry(ROOT_SECRET, ClaimQueue()),
        quotas=quotas or make_quotas(),
        concurrency=concurrency or ConcurrencyLimiter(max_total=16),
        load_shedder=load or make_load_shedder(*catalog.by_name),
        select_pool=PoolSelector(catalog).select,
        models={name: pool.model for name, pool in catalog.by_name.items()},
        experiments=ExperimentSet(),
        region=REGION,
    )


def make_load_shedder(
    *pools: str,
    clock: Clock | None = None,
    num_replicas: int = 1,
    max_num_seqs: int | None = None,
) -> LoadShedder:
    return LoadShedder(
        clock or FakeClock(),
        capacities=dict.fromkeys(pools, PoolCapacity(num_replicas, max_num_seqs)),
        targets_ms=dict.fromkeys(Mode, TARGET_MS),
    )


def make_engine_request(url: str = "http://engine-1:8000", **fields: Any) -> EngineRequest:
    pool = make_pool(url)
    defaults: dict[str, Any] = {
        "pool": pool,
        "replica": pool.replicas[0],
        "token_ids": [1, 2, 3],
        "stop_token_ids": [0],
        "stop": (),
        "max_tokens": 8,
        "salt": CacheSalt("0" * 64),
        "priority": 0,
    }
    return EngineRequest(**{**defaults, **fields})
