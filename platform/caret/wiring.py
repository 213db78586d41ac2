"""The composition root: reads the environment and puts the data plane together."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import structlog
from redis.asyncio import Redis

from caret.contracts.policy import Mode
from caret.foundation.clock import SystemClock
from caret.foundation.collector import Collector, collector_replaced
from caret.foundation.crypto import parse_root_secret
from caret.foundation.environment import env_bool, env_int, env_list, env_secret, env_text
from caret.foundation.grammars import load_all
from caret.foundation.home import home_folder
from caret.foundation.logs import describe
from inference.config import DataPlaneConfig
from inference.consumers.application import GatewayApplication
from inference.context.chat_template import load_chat_template
from inference.context.snippets import NoSnippets, Snippets
from inference.context.tokens import load_tokens
from inference.context.variants import check_variants
from inference.context.writer import PromptWriter
from inference.filtering.filter import check_filters
from inference.filtering.public_code import IndexFile
from inference.gateway.admit import Admission
from inference.gateway.authority import Authority
from inference.gateway.experiments import Experiments, read_experiments
from inference.gateway.leases import Leases
from inference.gateway.load import Load
from inference.gateway.newest import Newest
from inference.gateway.newest_feed import ClaimQueue, NewestFeed
from inference.gateway.quotas import Quotas
from inference.gateway.redis_leases import RedisLeases
from inference.gateway.seats import Seats
from inference.gateway.snapshot_feed import SnapshotFeed
from inference.gateway.suggestions import Suggestions
from inference.pipeline import DataPlane, warm
from inference.pools.catalog import Pools, read_catalog
from inference.pools.http_client import HttpClient
from inference.pools.prober import Prober
from inference.pools.replicas import Replicas
from inference.pools.speculation import Speculation
from inference.pools.vllm import VllmEngine
from inference.pools.vllm_health import VllmHealth
from inference.pools.vllm_metrics import VllmMetrics
from inference.prefix_cache.feed import KvEventFeed, Publication
from inference.prefix_cache.index import CacheIndex
from inference.prefix_cache.namespace import Namespaces
from inference.prefix_cache.warm import Warmer
from inference.recording.admission_gauges import AdmissionGauges
from inference.recording.background import Background
from inference.recording.engines import EngineWatch
from inference.recording.gauges import Gauges
from inference.recording.journal import FileJournal
from inference.recording.lag import LoopLag
from inference.recording.metrics import CountedJournal, Metrics
from inference.recording.metrics_page import metrics_page
from inference.recording.record import Observer, Recorder
from inference.recording.redis_shipment import RedisShipment
from inference.recording.slow import SlowLog
from inference.retrieval.retrieval import Retrieval
from inference.routing.route import Router

# Long enough for a Redis that is busy, short enough that shutdown never hangs on it.
_REDIS_TIMEOUT_S: Final = 2.0
_AFTER_DEFECT_S: Final = 1.0
_COLLECTOR_SETTINGS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_TRACE_SHARE: Final = 0.1  # a span costs 10 us, a completion has ten
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Links:
    """The connections that the plane's parts share."""

    redis: Redis
    engines: HttpClient
    session: aiohttp.ClientSession  # for what is asked beside the requests
    claims: ClaimQueue


def data_plane_config() -> DataPlaneConfig:
    """From the environment. Raises BadSetting."""
    home = home_folder()
    return DataPlaneConfig(
        root_secret=parse_root_secret(
            env_secret("CARET_ROOT_SECRET", default_file=home / "secrets" / "root")
        ),
        redis_url=env_secret("REDIS_URL", default_file=home / "secrets" / "redis-url"),
        pools_file=Path(env_text("CARET_POOLS", str(home / "pools.toml"))),
        journal_folder=Path(env_text("CARET_JOURNAL", str(home / "journal"))),
        allowed_origins=frozenset(env_list("CARET_ALLOWED_ORIGINS")),
        experiments_file=_optional_path("CARET_EXPERIMENTS"),
        public_code_file=_optional_path("CARET_PUBLIC_CODE"),
        has_retrieval=env_bool("CARET_RETRIEVAL", False),
        max_completions=env_int("CARET_MAX_COMPLETIONS", 512, low=1, high=100_000),
        max_tenant_share_percent=env_int("CARET_MAX_TENANT_SHARE", 25, low=1, high=100),
        first_token_targets_ms=_first_token_targets_ms(),
        max_connections_per_key=env_int(
            "CARET_MAX_CONNECTIONS_PER_KEY", 1_000, low=1, high=1_000_000
        ),
        max_snapshot_age_s=env_int("CARET_MAX_SNAPSHOT_AGE_S", 300, low=1, high=86_400),
        max_engine_stall_s=env_int("CARET_MAX_ENGINE_STALL_S", 10, low=1, high=600),
        metrics_host=env_text("CARET_METRICS_HOST", "127.0.0.1"),
        metrics_port=env_int("CARET_METRICS_PORT", 8403, low=0, high=65_535),
        metrics_tenants=env_int("CARET_METRICS_TENANTS", 0, low=0, high=1_000),
        exports_traces=any(env_text(name, "") for name in _COLLECTOR_SETTINGS),
        trace_share=None if env_text("OTEL_TRACES_SAMPLER", "") else _TRACE_SHARE,
    )


def _first_token_targets_ms() -> dict[Mode, float]:
    """80% of what users are promised, so that shedding begins before it is broken."""
    inline, fim, block, chat = (
        env_int(f"CARET_SHED_{name}_MS", default, low=1, high=600_000)
        for name, default in (("INLINE", 80), ("FIM", 120), ("BLOCK", 400), ("CHAT", 1_600))
    )
    return {
        Mode.INLINE: inline,
        Mode.FIM: fim,
        Mode.BLOCK: block,
        Mode.DOCSTRING: block,
        Mode.CHAT: chat,
    }


def _optional_path(name: str) -> Path | None:
    text = env_text(name, "")
    return Path(text) if text else None


def gateway_application() -> GatewayApplication:
    """The factory that the ASGI server calls."""
    config = data_plane_config()
    return GatewayApplication(
        lambda: open_data_plane(config), allowed_origins=config.allowed_origins
    )


@asynccontextmanager
async def open_data_plane(config: DataPlaneConfig) -> AsyncIterator[DataPlane]:
    """The plane with its background tasks; on leaving, what was recorded is delivered."""
    clock = SystemClock()
    authority = Authority(
        root_secret=config.root_secret,
        clock=clock,
        max_age_s=config.max_snapshot_age_s,
        max_watchers=config.max_connections_per_key,
    )
    journal = FileJournal(config.journal_folder)
    redis = Redis.from_url(config.redis_url, socket_timeout=_REDIS_TIMEOUT_S)
    engines = HttpClient(max_stall_s=config.max_engine_stall_s)
    metrics = Metrics(num_tenants=config.metrics_tenants)
    async with redis, aiohttp.ClientSession() as session, engines, _traces(config) as traces:
        recorder = Recorder(
            journal=CountedJournal(journal, metrics),
            clock=clock,
            observers=(metrics, SlowLog(clock), *traces),
        )
        load_all()
        links = Links(redis, engines, session, ClaimQueue())
        plane = _plane(config, clock, authority, recorder, links)
        leases = plane.admission.quotas.leases
        shipment = RedisShipment(redis)
        tasks = [
            asyncio.create_task(_keep_running("snapshots", SnapshotFeed(redis, authority).run)),
            asyncio.create_task(_keep_running("journal", partial(journal.run, shipment))),
            asyncio.create_task(_keep_running("leases", leases.run)),
            asyncio.create_task(_keep_running("newest", _newest_feed(plane, links).run)),
            asyncio.create_task(
                _keep_running("warm-ups", partial(plane.warmer.run, partial(warm, plane)))
            ),
            asyncio.create_task(_keep_running("speculation", plane.router.speculation.run)),
            asyncio.create_task(_keep_running("health", _prober(plane, session).run)),
            asyncio.create_task(_keep_running("collector", _collector(plane).run)),
            *(asyncio.create_task(_keep_running("kv_events", feed.run)) for feed in _feeds(plane)),
            *(asyncio.create_task(_keep_running("retrieval", run)) for run in _couriers(plane)),
        ]
        try:
            async with _metrics_served(config, plane, metrics, _Sources(journal, session)):
                with collector_replaced():
                    yield plane
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await leases.close()
            await journal.close(shipment)


def _newest_feed(plane: DataPlane, links: Links) -> NewestFeed:
    return NewestFeed(links.redis, links.claims, plane.admission.newest)


@asynccontextmanager
async def _traces(config: DataPlaneConfig) -> AsyncIterator[tuple[Observer, ...]]:
    if not config.exports_traces:
        yield ()
        return
    # Half a second of imports, for those who want it.
    from inference.recording.traces_export import exported_traces

    async with exported_traces(share=config.trace_share) as traces:
        yield (traces,)


class _Sources(NamedTuple):
    """What metrics tell of besides the plane."""

    journal: FileJournal
    session: aiohttp.ClientSession


@asynccontextmanager
async def _metrics_served(
    config: DataPlaneConfig, plane: DataPlane, metrics: Metrics, sources: _Sources
) -> AsyncIterator[None]:
    if not config.metrics_port:
        yield
        return
    lag = LoopLag(plane.clock)
    engines = EngineWatch(VllmMetrics(sources.session), plane.router.pools.replicas())
    gauges = Gauges(
        seats=plane.admission.seats,
        authority=plane.authority,
        pools=plane.router.pools,
        replicas=plane.router.replicas,
        journal=sources.journal,
    )
    tasks = [
        asyncio.create_task(_keep_running("lag", lag.run)),
        asyncio.create_task(_keep_running("engines", engines.run)),
    ]
    admission = AdmissionGauges(plane.admission.load, plane.admission.quotas)
    background = Background(plane.warmer, plane.router.speculation)
    families = (
        metrics.families,
        gauges.families,
        admission.families,
        engines.families,
        lag.families,
        background.families,
    )
    try:
        async with metrics_page(families, host=config.metrics_host, port=config.metrics_port):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _prober(plane: DataPlane, session: aiohttp.ClientSession) -> Prober:
    return Prober(VllmHealth(session), plane.router.replicas, plane.router.pools.replicas())


def _feeds(plane: DataPlane) -> list[KvEventFeed]:
    """One for each replica whose events are of use: a pool of one has nothing to choose."""
    router = plane.router
    return [
        KvEventFeed(
            Publication(replica.name, events=replica.kv_events, replay=replica.kv_replay),
            router.index.watch(replica.url),
        )
        for replica in router.pools.replicas(min_of_pool=2)
        if replica.kv_events is not None
    ]


def _snippets(config: DataPlaneConfig, clock: SystemClock, redis: Redis) -> Snippets:
    if not config.has_retrieval:
        return NoSnippets()
    return Retrieval(redis, root_secret=config.root_secret, clock=clock)


def _couriers(plane: DataPlane) -> list[Callable[[], Awaitable[None]]]:
    snippets = plane.snippets
    return [snippets.courier.run] if isinstance(snippets, Retrieval) else []


def _collector(plane: DataPlane) -> Collector:
    return Collector(plane.clock, is_quiet=lambda: plane.admission.seats.num_taken == 0)


async def _keep_running(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """A defect in the background is logged and does not end the work: without it revocations or
    records would stop in silence."""
    while True:
        try:
            await run()
        except Exception as defect:  # noqa: BLE001  # the edge of a background task
            log.error("background.defect", task=name, **describe(defect))
            await asyncio.sleep(_AFTER_DEFECT_S)


def _plane(
    config: DataPlaneConfig,
    clock: SystemClock,
    authority: Authority,
    recorder: Recorder,
    links: Links,
) -> DataPlane:
    pools = read_catalog(config.pools_file)
    speculation = Speculation(pools, VllmMetrics(links.session), clock)
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
        ),
        engine=VllmEngine(links.engines),
        recorder=replace(recorder, observers=(*recorder.observers, speculation)),
        suggestions=Suggestions(clock=clock, keep=recorder.journal.append),
        warmer=Warmer(clock),
        public_code=IndexFile(config.public_code_file) if config.public_code_file else None,
    )


def _admission(
    config: DataPlaneConfig, clock: SystemClock, pools: Pools, links: Links
) -> Admission:
    return Admission(
        newest=Newest(config.root_secret, links.claims),
        quotas=Quotas(Leases(RedisLeases(links.redis), clock), clock),
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
    )


def _experiments(config: DataPlaneConfig) -> Experiments:
    if config.experiments_file is None:
        return Experiments()
    experiments = read_experiments(config.experiments_file)
    check_filters(experiments.variants)
    check_variants(experiments.variants)
    return experiments
