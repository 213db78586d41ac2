"""The settings of `manage.py up`, read once from the environment."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from caret.foundation.environment import BadSetting, env_bool, env_text
from caret.local.engines.embedding_engine import (
    DEFAULT_EMBEDDINGS_MODEL,
    EmbeddingsSettings,
    embeddings_settings,
)
from caret.local.engines.engine import EngineSettings, engine_from_environment
from caret.local.engines.engine_plan import (
    TWO_ENGINES_GPU_PERCENT,
    EnginePlan,
    Machine,
    plan_engines,
    read_machine,
)
from caret.local.engines.kv_tier import KvTierSettings, read_kv_tier
from caret.local.engines.pools_file import Replicas
from caret.local.engines.profiles import Hardware
from caret.local.paths import EmbeddedPaths, home_from_environment
from caret.local.ports import Port, Ports, ports_from_environment


@dataclass(frozen=True, slots=True)
class UpSettings:
    paths: EmbeddedPaths
    ports: Ports
    machine: Machine
    engine_plan: EnginePlan
    # The first engine serves the fast tier, and the last one the quality tier; a single engine
    # serves both. In a mixed plan, all engines serve both tiers. Not started if `own_pools` is set.
    engines: tuple[EngineSettings, ...]
    # True: the user has named their own server in a setting, so `up` does not start one.
    has_own_postgres: bool
    has_own_redis: bool
    own_pools: Path | None  # CARET_POOLS_FILE; None: `up` starts the engines
    embeddings: EmbeddingsSettings | None  # None: no retrieval, or the user's own embedding engine
    kv_tier: KvTierSettings | None  # None: an engine's cached prompts are lost when it ends
    has_retrieval: bool
    has_reload: bool  # for `make dev`: processes restart when their code changes

    @property
    def pools_file(self) -> Path:
        return self.own_pools or self.paths.pools

    @property
    def replicas(self) -> Replicas:
        """The replicas in the pools file that `up` writes: by tier, or a list for both tiers."""
        if self.engine_plan.is_mixed:
            return [engine.entry for engine in self.engines]
        fast, quality = self.engines[0], self.engines[-1]
        return {"fast": [fast.entry], "quality": [quality.entry]}

    @property
    def needed_ports(self) -> tuple[Port, ...]:
        engine_ports = (self.ports.engine, self.ports.quality_engine)
        engines = () if self.own_pools else engine_ports[: len(self.engines)]
        embeddings = () if self.embeddings is None else (self.ports.embeddings,)
        kv_tier = () if self.kv_tier is None else self.kv_tier.ports
        return (self.ports.console, self.ports.gateway, *engines, *embeddings, *kv_tier)


def settings_from_environment() -> UpSettings:
    """Read the settings.

    Raises BadSetting.
    """
    ports = ports_from_environment()
    own_pools = os.environ.get("CARET_POOLS_FILE")
    has_retrieval = env_bool("CARET_RETRIEVAL", False)
    has_own_postgres = _is_set("DATABASE_URL")
    if has_own_postgres and not _is_set("CARET_OWNER_DATABASE_URL"):
        raise BadSetting(
            "DATABASE_URL is set, so Caret uses your own Postgres. Set CARET_OWNER_DATABASE_URL"
            " too, for migrations: the same database, with the role that owns the tables."
        )
    engine = engine_from_environment(ports.engine.number)
    kv_tier = read_kv_tier(engine, ports, has_own_engines=bool(own_pools))
    if kv_tier is not None:
        engine = replace(engine, kv_tier_arguments=kv_tier.engine_arguments)
    machine = read_machine()
    # On a GPU, `machine` has the free memory of the GPU, which a KV tier does not use.
    if kv_tier is not None and machine.hardware is Hardware.CPU:
        machine = machine.without(kv_tier.needed_bytes)
    plan = plan_engines(
        env_text("CARET_ENGINES", "auto"), machine, is_demo_model=engine.model.is_demo
    )
    return UpSettings(
        paths=home_from_environment(),
        ports=ports,
        machine=machine,
        engine_plan=plan,
        engines=make_engines(plan, engine, ports),
        has_own_postgres=has_own_postgres,
        has_own_redis=_is_set("REDIS_URL"),
        own_pools=Path(own_pools).absolute() if own_pools else None,
        embeddings=_read_embeddings(ports) if has_retrieval else None,
        kv_tier=kv_tier,
        has_retrieval=has_retrieval,
        has_reload=env_bool("CARET_RELOAD", False),
    )


def make_engines(
    plan: EnginePlan, engine: EngineSettings, ports: Ports
) -> tuple[EngineSettings, ...]:
    if len(plan.profiles) == 1:
        return (engine,)
    speculation = (False, True) if plan.is_mixed else (None, None)  # None: as in the profile
    numbers = (ports.engine.number, ports.quality_engine.number)
    return tuple(
        replace(
            engine,
            port=port,
            profile=profile,
            gpu_memory_percent=TWO_ENGINES_GPU_PERCENT,
            speculates=speculates,
        )
        for port, profile, speculates in zip(numbers, plan.profiles, speculation, strict=True)
    )


def _read_embeddings(ports: Ports) -> EmbeddingsSettings | None:
    if os.environ.get("CARET_EMBEDDINGS_URL"):
        return None
    return embeddings_settings(
        served_name=env_text("CARET_EMBEDDINGS_MODEL", DEFAULT_EMBEDDINGS_MODEL),
        port=ports.embeddings.number,
    )


def _is_set(setting: str) -> bool:
    return bool(os.environ.get(setting) or os.environ.get(f"{setting}_FILE"))
