"""The data plane, put together and kept running for as long as it is open."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import aiohttp
from redis.asyncio import BlockingConnectionPool, Redis

from caret.composition.background_tasks import Run, kept_running
from caret.composition.discovery import membership_of
from caret.composition.metrics import Sources, metrics_served
from caret.foundation.clock import SystemClock
from caret.foundation.garbage_collection import Collector, collector_replaced
from caret.foundation.parsing.grammars import load_all
from inference.config import DataPlaneConfig
from inference.content_capture.telemetry import Telemetry
from inference.context.prompt.chat_template import load_chat_template
from inference.context.prompt.forgetting import forgetting
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.prompt.variant_options import check_variants
from inference.context.sources.snippet_source import NoSnippets, Snippets
from inference.context.tokenization.tokenizer import load_tokens
from inference.filtering.filter import check_filters
from inference.filtering.public_code_index import IndexFile
from inference.gateway.admit import Admission
from inference.gateway.experiments import Experiments, read_experiments
from inference.gateway.load_shedding.concurrency_limit import Seats
from inference.gateway.load_shedding.load_shedder import Load
from inference.gateway.protocol.late_outcomes import Belated
from inference.gateway.protocol.recent_suggestions import Suggestions
from inference.gateway.rate_limits.body_quota import Uploads
from inference.gateway.rate_limits.leases import Leases
from inference.gateway.rate_limits.quotas import Quotas
from inference.gateway.rate_limits.redis_lease_store import RedisLeases, redis_for_leases
from inference.gateway.snapshots.snapshot_feed import SnapshotFeed
from inference.gateway.snapshots.snapshot_store import Authority
from inference.gateway.supersession.feed import ClaimQueue, NewestFeed
from inference.gateway.supersession.registry import Newest
from inference.pipeline import DataPlane, warm
from inference.pools.discovery.added_replica_feed import AdditionFeed
from inference.pools.discovery.drain_feed import DrainFeed
from inference.pools.health.health_checker import Prober
from inference.pools.health.replica_states import Replicas
from inference.pools.health.reroute import moving_overdue
from inference.pools.pool_config import Pools, read_catalog
from inference.pools.speculation.speculative_decoding import Speculation
from inference.pools.vllm.engine import VllmEngine
from inference.pools.vllm.health import VllmHealth
from inference.pools.vllm.http_client import HttpClient
from inference.pools.vllm.kv_event_feeds import KvEventFeeds
from inference.pools.vllm.metrics import VllmMetrics
from inference.prefix_cache.cache_index import CacheIndex
from inference.prefix_cache.namespace import Namespaces
from inference.prefix_cache.warmup import Warmer
from inference.recording.completion_metrics import CountedJournal, Metrics
from inference.recording.journal import FileJournal
from inference.recording.record import Observer, Recorder
from inference.recording.redis_shipper import RedisShipment
from inference.recording.slow_log import SlowLog
from inference.recording.slowest_requests import Slowest, SlowestJournal
from inference.retrieval.retrieval import Retrieval
from inference.routing.route import Router

# Long enough for a Redis that is busy, short enough that shutdown never hangs on it.
_REDIS_TIMEOUT_S: Final = 2.0
_MAX_REDIS_CONNECTIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Links:
    """The connections that the plane's parts share."""

    redis: Redis
    leases: Redis
    engines: HttpClient
    session: aiohttp.ClientSession  # for what is asked beside the requests
    claims: ClaimQueue


@asynccontextmanager
async def open_data_plane(config: DataPlaneConfig) -> AsyncIterator[DataPlane]:
    """The plane with its background tasks; on leaving, what was recorded is delivered."""
    clock = SystemClock()
    authority = Authority(
        root_secret=config.root_secret,
        clock=clock,
        max_age_s=config.max_snapshot_age_s,
        max_watchers=config.max_connections_per_key,
        region=config.region,
    )
    journal = FileJournal(config.journal_folder)
    redis = Redis.from_pool(
        # One call too many waits for a connection; redis-py's other pool would raise at once.
        BlockingConnectionPool.from_url(
            config.redis_url,
            max_connections=_MAX_REDIS_CONNECTIONS,
            timeout=_REDIS_TIMEOUT_S,
            socket_timeout=_REDIS_TIMEOUT_S,
        )
    )
    engines = HttpClient(max_stall_s=config.max_engine_stall_s)
    metrics, slowest = Metrics(num_tenants=config.metrics_tenants), Slowest(clock)
    async with (
        redis,
        redis_for_leases(config.redis_url, socket_timeout_s=_REDIS_TIMEOUT_S) as leases,
        aiohttp.ClientSession() as session,
        engines,
        _traces(config) as traces,
    ):
        recorder = Recorder(
            journal=SlowestJournal(CountedJournal(journal, metrics), slowest),
            clock=clock,
            observers=(metrics, SlowLog(clock), *traces),
        )
        load_all()
        links = Links(redis, leases, engines, session, ClaimQueue())
        plane = _plane(config, clock, authority, recorder, links)
        drains = DrainFeed(redis, plane.router.replicas)
        membership, watches = membership_of(config, plane, session)
        additions = AdditionFeed(redis, membership)
        await drains.begin()
        await additions.begin()
        await membership.round()  # before anything is asked of a replica
        async with (
            _delivered(journal, RedisShipment(redis)) as shipping,
            _returned(plane.admission.quotas.leases) as returning,
            kept_running(
                (
                    *(("journal", shipping), ("leases", returning), ("drains", drains.run)),
                    *(("membership", membership.run), ("additions", additions.run), *watches),
                    *_work(config, plane, links),
                )
            ),
            metrics_served(config, plane, metrics, Sources(journal, session, slowest, membership)),
        ):
            with collector_replaced():
                yield plane


@asynccontextmanager
async def _delivered(journal: FileJournal, shipment: RedisShipment) -> AsyncIterator[Run]:
    """Yields what ships the journal meanwhile; what is left at the end is shipped then."""
    try:
        yield partial(journal.run, shipment)
    finally:
        await journal.close(shipment)


@asynccontextmanager
async def _returned(leases: Leases) -> AsyncIterator[Run]:
    """Yield what returns unused leases meanwhile; at the end all are returned."""
    try:
        yield leases.run
    finally:
        await leases.close()


def _work(config: DataPlaneConfig, plane: DataPlane, links: Links) -> Iterator[tuple[str, Run]]:
    """What runs beside the requests, by name."""
    yield "snapshots", SnapshotFeed(links.redis, plane.authority, is_relayed=config.is_relayed).run
    yield "newest", NewestFeed(links.redis, links.claims, plane.admission.newest).run
    yield "warm-ups", partial(plane.warmer.run, partial(warm, plane))
    yield "speculation", partial(plane.router.speculation.run, every_s=config.engine_look_s)
    yield "health", _prober(plane, links.session).run
    yield "overdue", partial(moving_overdue, plane.router.replicas)
    yield "forgetting", partial(forgetting, plane.writers.values())
    yield "collector", _collector(plane).run
    yield "kv_events", KvEventFeeds(plane.router.pools, plane.router.index).run
    if plane.telemetry is not None:
        yield "telemetry", plane.telemetry.courier.run
    if isinstance(plane.snippets, Retrieval):
        yield "retrieval", plane.snippets.courier.run


@asynccontextmanager
async def _traces(config: DataPlaneConfig) -> AsyncIterator[tuple[Observer, ...]]:
    if not config.exports_traces:
        yield ()
        return
    # Half a second of imports, for those who want it.
    from inference.recording.otlp_export import exported_traces

    async with exported_traces(
        share=config.trace_share, trusts_clients=config.trusts_clients_traces
    ) as traces:
        yield (traces,)


def _prober(plane: DataPlane, session: aiohttp.ClientSession) -> Prober:
    return Prober(VllmHealth(session), plane.router.replicas, plane.router.pools.replicas)


def _snippets(config: DataPlaneConfig, clock: SystemClock, redis: Redis) -> Snippets:
    if not config.has_retrieval:
        return NoSnippets()
    return Retrieval(redis, root_secret=config.root_secret, clock=clock)


def _collector(plane: DataPlane) -> Collector:
    return Collector(plane.clock, is_quiet=lambda: plane.admission.seats.num_taken == 0)


def _plane(
    config: DataPlaneConfig,
    clock: SystemClock,
    authority: Authority,
    recorder: Recorder,
    links: Links,
) -> DataPlane:
    pools = read_catalog(config.pools_file)
    speculation = Speculation(pools, VllmMetrics(links.session), clock)
    telemetry = Telemetry(links.redis, root_secret=config.root_secret, clock=clock)
    return DataPlane(
        clock=clock,
        authority=authority,
        admission=_admission(config, clock, pools, links),
        writers={
            name: PromptWriter(
                load_tokens(pool.tokenizer),
                model=pool.model,
                max_context_tokens=pool.max_context_tokens,
                clock=clock,
                style=pool.style,
                chat_template=load_chat_template(pool.tokenizer, clock),
            )
            for name, pool in pools.by_name.items()
        },
        snippets=_snippets(config, clock, links.redis),
        router=Router(
            pools=pools,
            namespaces=Namespaces(config.root_secret),
            replicas=Replicas(clock),
            index=CacheIndex(),
            speculation=speculation,
            targets_ms=config.first_token_targets_ms,
        ),
        engine=VllmEngine(links.engines),
        recorder=replace(
            recorder,
            followers=(speculation,),
            observers=(*recorder.observers, telemetry),
            models={name: pool.model for name, pool in pools.by_name.items()},
        ),
        suggestions=Suggestions(clock=clock, keep=recorder.journal.append),
        belated=Belated(clock=clock, keep=recorder.journal.append),
        warmer=Warmer(clock),
        uploads=Uploads(),
        public_code=IndexFile(config.public_code_file) if config.public_code_file else None,
        telemetry=telemetry,
    )


def _admission(
    config: DataPlaneConfig, clock: SystemClock, pools: Pools, links: Links
) -> Admission:
    return Admission(
        newest=Newest(config.root_secret, links.claims),
        quotas=Quotas(Leases(RedisLeases(links.leases), clock), clock),
        seats=Seats(
            max_total=config.max_completions, max_tenant_share=config.max_tenant_share_percent / 100
        ),
        load=Load(
            clock,
            num_replicas={name: len(pool.replicas) for name, pool in pools.by_name.items()},
            targets_ms=config.first_token_targets_ms,
        ),
        pool_of=lambda snapshot, tier: pools.of(snapshot, tier).name,
        experiments=_experiments(config),
        model_of=lambda snapshot, tier: pools.of(snapshot, tier).model,
        region=config.region,
    )


def _experiments(config: DataPlaneConfig) -> Experiments:
    if config.experiments_file is None:
        return Experiments()
    experiments = read_experiments(config.experiments_file)
    check_filters(experiments.variants)
    check_variants(experiments.variants)
    return experiments
