"""Assembles the data plane, and runs its background tasks while it is open."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import aiohttp
from redis.asyncio import BlockingConnectionPool, Redis

from caret.composition.background_tasks import Run, run_background_tasks
from caret.composition.metrics import MetricSources, serve_metrics
from caret.contracts.policy import Tier
from caret.contracts.pricing import MAX_PROMPT_TOKENS
from caret.foundation.clock import SystemClock
from caret.foundation.concurrency.wait_for import keep_cancellations
from caret.foundation.environment import BadSetting
from caret.foundation.garbage_collection import GcScheduler, disabled_gc
from caret.foundation.parsing.grammars import load_all
from inference.completion.variant import Variant
from inference.config import DataPlaneConfig
from inference.content_capture import ContentCapture
from inference.context.prompt.model_formats.chat_template import load_chat_template
from inference.context.prompt.prompt_writer import PromptWriter, evict_expired_forever
from inference.context.prompt.variant_options import validate_variants
from inference.context.sources.snippet_source import NullSnippetSource, SnippetSource
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.filtering.filter import check_filters
from inference.filtering.public_code_index import ActivePublicCodeIndex, PublicCodeFeed
from inference.gateway.admit import AdmissionController
from inference.gateway.experiments import ExperimentSet, read_experiments
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.load_shedding.load_shedder import LoadShedder, PoolCapacity
from inference.gateway.protocol.late_outcomes import LateOutcomeRecorder
from inference.gateway.protocol.recent_suggestions import RecentSuggestions
from inference.gateway.rate_limits.body_quota import BodyQuota
from inference.gateway.rate_limits.leases import Leases
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.rate_limits.redis_lease_store import RedisLeaseStore, open_lease_redis
from inference.gateway.snapshots.snapshot_feed import SnapshotFeed
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.gateway.supersession.feed import ClaimQueue, SupersessionFeed
from inference.gateway.supersession.registry import SupersessionRegistry
from inference.pipeline import DataPlane, warm_up
from inference.pools.discovery.dns_resolver import DnsResolver
from inference.pools.discovery.fleet_state_feed import AddedReplicaFeed, DrainFeed, ExperimentFeed
from inference.pools.discovery.kubernetes_api import KubernetesApi, ServiceAccount
from inference.pools.discovery.kubernetes_resolver import KubernetesResolver
from inference.pools.discovery.pool_members import PoolMembers
from inference.pools.discovery.replica_identity import PROBE_TEXT
from inference.pools.health.health_checker import HealthChecker
from inference.pools.health.replica_states import ReplicaStates, reroute_overdue
from inference.pools.pool_config import DiscoverySource, Pool, PoolConfig, read_pool_config
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.pools.vllm.engine import VllmEngine
from inference.pools.vllm.http_client import HttpClient
from inference.pools.vllm.identity import VllmIdentity
from inference.pools.vllm.kv_event_feeds import KvEventFeeds
from inference.pools.vllm.monitoring import VllmHealth, VllmMetrics
from inference.prefix_cache.cache_index import PrefixCacheIndex
from inference.prefix_cache.namespace import CacheNamespaces
from inference.prefix_cache.warmup import WarmupQueue
from inference.recording.journal import FileJournal
from inference.recording.metrics.completion_metrics import CompletionMetrics, CountingJournal
from inference.recording.record import CompletionObserver, Recorder
from inference.recording.redis_shipper import RedisShipper
from inference.recording.slowest_requests import SlowestRequests, SlowestRequestsJournal, SlowLog
from inference.retrieval import Retrieval
from inference.routing.pool_selection import PoolSelector
from inference.routing.route import Router

# Long enough for a busy Redis, and short enough that shutdown does not hang.
_REDIS_TIMEOUT_S: Final = 2.0
_MAX_REDIS_CONNECTIONS: Final = 100


@dataclass(frozen=True, slots=True)
class SharedConnections:
    """The connections, and the queue of claims, that the components of the data plane share."""

    redis: Redis
    leases: Redis  # for calls about leases only
    engines: HttpClient  # for completions
    session: aiohttp.ClientSession  # for all other HTTP calls
    claims: ClaimQueue


@asynccontextmanager
async def open_data_plane(config: DataPlaneConfig) -> AsyncIterator[DataPlane]:
    """Yield the data plane, and run its background tasks until the block ends.

    Then ship the journal and return the leases, each within a time limit. Raises BadSetting.
    """
    keep_cancellations()  # before any task starts: Python 3.11 can lose them (ADR 0116)
    clock = SystemClock()
    snapshot_store = SnapshotStore(
        root_secret=config.root_secret,
        clock=clock,
        max_age_s=config.max_snapshot_age_s,
        max_watchers=config.max_connections_per_key,
        region=config.region,
    )
    journal = FileJournal(config.journal_dir)
    metrics = CompletionMetrics(num_tenants=config.metrics_max_tenants)
    slowest = SlowestRequests(clock)
    async with (
        _make_redis(config.redis_url) as redis,
        open_lease_redis(config.redis_url, socket_timeout_s=_REDIS_TIMEOUT_S) as leases,
        aiohttp.ClientSession() as session,
        HttpClient(max_stall_s=config.max_engine_stall_s) as engines,
        _open_spans(config) as span_recorders,
    ):
        recorder = Recorder(  # _build_plane adds the parts that need the pools or Redis
            journal=SlowestRequestsJournal(CountingJournal(journal, metrics), slowest),
            clock=clock,
            observers=(metrics, SlowLog(clock), *span_recorders),
        )
        load_all()  # the grammars of all languages, so that no completion waits for one
        shared = SharedConnections(redis, leases, engines, session, ClaimQueue())
        plane = _build_plane(config, clock, snapshot_store, recorder, shared)
        drains = DrainFeed(redis, plane.router.replicas)
        pool_members, discovery_tasks = make_pool_members(config, plane, session)
        additions = AddedReplicaFeed(redis, pool_members)
        experiments = ExperimentFeed(redis, plane.admission.experiments, _check_variants)
        public_code = PublicCodeFeed(redis, plane.public_code, config.public_code_folder)
        feeds = (experiments, public_code, drains, additions)
        for feed in feeds:
            await feed.start()
        await pool_members.reconcile()  # before any replica is called
        async with (
            _open_journal_shipping(journal, RedisShipper(redis)) as shipping,
            _open_lease_return(plane.admission.quotas.leases) as lease_return,
            run_background_tasks(
                (
                    ("journal", shipping),
                    ("leases", lease_return),
                    *((feed.name, feed.run) for feed in feeds),
                    ("pool_members", pool_members.run),
                    *discovery_tasks,
                    *_list_background_tasks(config, plane, shared),
                )
            ),
            serve_metrics(
                config, plane, metrics, MetricSources(journal, session, slowest, pool_members)
            ),
        ):
            with disabled_gc():  # instead, the task `garbage_collection` collects at quiet moments
                yield plane


def _make_redis(url: str) -> Redis:
    # If all connections are in use, a call waits. redis-py's default pool would raise at once.
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_MAX_REDIS_CONNECTIONS,
        timeout=_REDIS_TIMEOUT_S,
        socket_timeout=_REDIS_TIMEOUT_S,
    )
    return Redis.from_pool(pool)


@asynccontextmanager
async def _open_journal_shipping(journal: FileJournal, shipper: RedisShipper) -> AsyncIterator[Run]:
    """Yield the function that ships the journal. When the block ends, ship the rest."""
    try:
        yield partial(journal.run, shipper)
    finally:
        await journal.close(shipper)


@asynccontextmanager
async def _open_lease_return(leases: Leases) -> AsyncIterator[Run]:
    """Yield the function that returns unused leases. When the block ends, return all leases."""
    try:
        yield leases.run
    finally:
        await leases.close()


def _list_background_tasks(
    config: DataPlaneConfig, plane: DataPlane, shared: SharedConnections
) -> Iterator[tuple[str, Run]]:
    """Yield the background tasks by name."""
    yield (
        "snapshots",
        SnapshotFeed(
            shared.redis, plane.snapshots, clock=plane.clock, is_relayed=config.is_behind_relay
        ).run,
    )
    yield "claims", SupersessionFeed(shared.redis, shared.claims, plane.admission.supersession).run
    yield "warm-ups", partial(plane.warmup_queue.run, partial(warm_up, plane))
    yield (
        "speculation",
        partial(plane.router.speculation.run, every_s=config.engine_metrics_interval_s),
    )
    yield "health", _make_health_checker(plane, shared.session).run
    yield "reroutes", partial(reroute_overdue, plane.router.replicas)
    yield "prompt_eviction", partial(evict_expired_forever, plane.prompt_writers.values())
    yield "garbage_collection", _make_gc_scheduler(plane).run
    yield "kv_events", KvEventFeeds(plane.router.pools, plane.router.index).run
    if plane.content_capture is not None:
        yield "content_capture", plane.content_capture.sender.run
    if isinstance(plane.snippets, Retrieval):
        yield "retrieval", plane.snippets.client.run


@asynccontextmanager
async def _open_spans(config: DataPlaneConfig) -> AsyncIterator[tuple[CompletionObserver, ...]]:
    if not config.has_trace_export:
        yield ()
        return
    # These imports take half a second. Only installations that export traces need them.
    from inference.recording.otlp_export import open_otlp_exporter

    async with open_otlp_exporter(
        share=config.trace_share, trusts_clients=config.is_client_trace_trusted
    ) as span_recorder:
        yield (span_recorder,)


def _make_health_checker(plane: DataPlane, session: aiohttp.ClientSession) -> HealthChecker:
    router = plane.router
    return HealthChecker(VllmHealth(session), router.replicas, router.pools.list_replicas)


def _make_snippet_source(
    config: DataPlaneConfig, clock: SystemClock, redis: Redis
) -> SnippetSource:
    if not config.has_retrieval:
        return NullSnippetSource()
    return Retrieval(redis, root_secret=config.root_secret, clock=clock)


def _make_gc_scheduler(plane: DataPlane) -> GcScheduler:
    return GcScheduler(plane.clock, is_quiet=lambda: plane.admission.concurrency.num_in_flight == 0)


def _build_plane(
    config: DataPlaneConfig,
    clock: SystemClock,
    snapshot_store: SnapshotStore,
    recorder: Recorder,
    shared: SharedConnections,
) -> DataPlane:
    pools = read_pool_config(config.pools_file)
    selector = PoolSelector(pools, snapshot_store.may_use_pool)
    speculation = SpeculationTracker(
        pools,
        VllmMetrics(shared.session),
        clock,
        fallback_after_s=config.speculation_fallback_s,
        retry_after_s=config.speculation_retry_s,
    )
    content_capture = ContentCapture(shared.redis, root_secret=config.root_secret, clock=clock)
    return DataPlane(
        clock=clock,
        snapshots=snapshot_store,
        admission=_build_admission(config, clock, pools, selector, shared),
        pool_selector=selector,
        prompt_writers={
            name: PromptWriter(
                load_tokenizer(pool.tokenizer),
                model=pool.model,
                max_context_tokens=pool.max_context_tokens,
                clock=clock,
                options=pool.prompt_options,
                chat_template=load_chat_template(pool.tokenizer, clock),
            )
            for name, pool in pools.by_name.items()
        },
        snippets=_make_snippet_source(config, clock, shared.redis),
        router=Router(
            pools=pools,
            namespaces=CacheNamespaces(config.root_secret),
            replicas=ReplicaStates(clock),
            index=PrefixCacheIndex(),
            speculation=speculation,
            targets_ms=config.first_token_targets_ms,
        ),
        engine=VllmEngine(shared.engines),
        recorder=replace(
            recorder,
            listeners=(speculation,),  # learns of starts, too; observers only of ends
            observers=(*recorder.observers, content_capture),
            models={name: pool.model for name, pool in pools.by_name.items()},
        ),
        suggestions=RecentSuggestions(clock=clock, append_record=recorder.journal.append),
        late_outcomes=LateOutcomeRecorder(clock=clock, append_record=recorder.journal.append),
        warmup_queue=WarmupQueue(clock),
        body_quota=BodyQuota(),
        public_code=ActivePublicCodeIndex.open(config.public_code_file),
        content_capture=content_capture,
    )


def _build_admission(
    config: DataPlaneConfig,
    clock: SystemClock,
    pools: PoolConfig,
    selector: PoolSelector,
    shared: SharedConnections,
) -> AdmissionController:
    return AdmissionController(
        supersession=SupersessionRegistry(config.root_secret, shared.claims),
        quotas=Quotas(
            Leases(RedisLeaseStore(shared.leases), clock),
            clock,
            prompt_tokens={tier: _largest_budget(pools, tier) for tier in Tier},
        ),
        concurrency=ConcurrencyLimiter(
            max_total=config.max_concurrent_completions,
            max_tenant_share=config.max_tenant_concurrency_percent / 100,
        ),
        load_shedder=LoadShedder(
            clock,
            capacities={name: _capacity_of(pool) for name, pool in pools.by_name.items()},
            targets_ms=config.first_token_targets_ms,
        ),
        select_pool=selector.select,
        models={name: pool.model for name, pool in pools.by_name.items()},
        experiments=_read_experiments(config),
        region=config.region,
    )


def _largest_budget(pools: PoolConfig, tier: Tier) -> int:
    """Return the largest token budget of a prompt in the tier's pools."""
    return max(
        pool.prompt_options.budget_tokens or MAX_PROMPT_TOKENS[tier]
        for pool in pools.by_name.values()
        if pool.tier is tier
    )


def _capacity_of(pool: Pool) -> PoolCapacity:
    return PoolCapacity(num_replicas=len(pool.replicas), max_num_seqs=pool.max_num_seqs)


def _read_experiments(config: DataPlaneConfig) -> ExperimentSet:
    if config.experiments_file is None:
        return ExperimentSet()
    experiments = read_experiments(config.experiments_file)
    try:
        _check_variants(experiments.variants)
    except BadSetting as error:
        raise BadSetting(f"CARET_EXPERIMENTS_FILE: {error}") from error
    return experiments


def _check_variants(variants: Iterable[Variant]) -> None:
    """Check the filters and the other values of variants. Raises BadSetting."""
    listed = tuple(variants)
    check_filters(listed)
    validate_variants(listed)


def make_pool_members(
    config: DataPlaneConfig, plane: DataPlane, session: aiohttp.ClientSession
) -> tuple[PoolMembers, tuple[tuple[str, Run], ...]]:
    """Return the pool members and the named background tasks that they need.

    Raises BadSetting.
    """
    router, shedder = plane.router, plane.admission.load_shedder
    kubernetes = _make_kubernetes_resolver(config, router.pools.by_name.values(), session)
    pool_members = PoolMembers(
        router.pools,
        router.replicas,
        identities=VllmIdentity(session),
        resolvers={
            DiscoverySource.DNS: DnsResolver(config.dns_resolver),
            DiscoverySource.KUBERNETES: kubernetes,
        },
        token_ids={
            name: tuple(writer.tokenizer.encode(PROBE_TEXT))
            for name, writer in plane.prompt_writers.items()
        },
    )
    pool_members.changed.append(lambda pool: shedder.set_capacity(pool.name, _capacity_of(pool)))
    kubernetes.changed.append(pool_members.request_reconcile)
    return pool_members, ((("endpoints", kubernetes.run),) if kubernetes.names else ())


def _make_kubernetes_resolver(
    config: DataPlaneConfig, pools: Iterable[Pool], session: aiohttp.ClientSession
) -> KubernetesResolver:
    names = {
        pool.discover.host
        for pool in pools
        if pool.discover is not None and pool.source is DiscoverySource.KUBERNETES
    }
    if names and not config.kubernetes_url:
        raise BadSetting(
            "A pool has the source kubernetes: set CARET_KUBERNETES_API, or run in a pod."
        )
    account = ServiceAccount(config.kubernetes_url, config.kubernetes_service_account_dir)
    return KubernetesResolver(KubernetesApi(session, account), names)
