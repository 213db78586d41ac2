"""The KV tier: LMCache, and a Valkey server where it stores the engines' cached prompts.

It starts only with CARET_KV_TIER_GB. Cached prompts then survive a restart of an engine. A cached
prompt is found by a hash that includes the salt of its cache namespace, so other tenants cannot use
it. Cached prompts are kept in memory only, and the least recently used ones are dropped first. None
remains after `make down`.
"""

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from caret.foundation.environment import BadSetting, env_int
from caret.local.databases.credentials import KV_STORE, read_password
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.engine import EngineSettings, engine_environment
from caret.local.engines.engine_plan import read_free_bytes
from caret.local.engines.profiles import Hardware
from caret.local.errors import MissingFeature
from caret.local.paths import EmbeddedPaths
from caret.local.ports import LOOPBACK, Port, Ports
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.service import CommandService, Service

_SETTING = "CARET_KV_TIER_GB"
_MAX_GB = 4096
_OVERHEAD_GB = 1  # 0.5 GB for LMCache itself, and the rest for the names of Valkey's entries
# Cached prompts are stored in chunks: one block of the CPU profiles, or two of the GPU profiles.
_CHUNK_TOKENS = 32
_READY_TIMEOUT_S = 120.0
_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class KvTierSettings:
    size_gb: int  # for cached prompts in LMCache, and as much again in its Valkey server
    hardware: Hardware  # of the engines
    port: Port  # LMCache, for the engines
    http_port: Port  # LMCache's health checks
    store_port: Port  # the Valkey server

    @property
    def needed_bytes(self) -> int:
        """The memory of LMCache and of its Valkey server."""
        return (2 * self.size_gb + _OVERHEAD_GB) * 2**30

    @property
    def sentence(self) -> str:
        """The description of the tier for the terminal."""
        return (
            "A KV tier keeps cached prompts when an engine restarts:"
            f" {self.size_gb} GB in LMCache, {self.size_gb} GB in its Valkey server."
        )

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port, self.http_port, self.store_port)

    @property
    def engine_arguments(self) -> tuple[str, str]:
        transfer = {
            "kv_connector": "LMCacheMPConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {
                "lmcache.mp.host": f"tcp://{LOOPBACK}",
                "lmcache.mp.port": self.port.number,
            },
        }
        return "--kv-transfer-config", json.dumps(transfer)


def read_kv_tier(
    engine: EngineSettings, ports: Ports, *, has_own_engines: bool
) -> KvTierSettings | None:
    """Read the settings; return None if there is no KV tier.

    `has_own_engines`: CARET_POOLS_FILE names the user's own engines, so `up` starts none. Raises
    BadSetting if other settings or the machine's memory do not allow a KV tier.
    """
    size_gb = env_int(_SETTING, 0, low=0, high=_MAX_GB)
    if size_gb == 0:
        return None
    if has_own_engines:
        raise BadSetting(
            f"{_SETTING} is set, but CARET_POOLS_FILE names your own engines. Connect them to your"
            " own KV tier, and remove this setting."
        )
    if (connector := engine.parsed_arguments.kv_connector) is not None:
        raise BadSetting(
            f"{_SETTING} starts a KV tier, and CARET_ENGINE_ARGS names another one ({connector})."
            " Remove one of the two settings."
        )
    tier = KvTierSettings(
        size_gb, engine.hardware, ports.kv_tier, ports.kv_tier_http, ports.kv_store
    )
    free_bytes = read_free_bytes()
    if tier.needed_bytes > free_bytes:
        raise BadSetting(
            f"{_SETTING} is {size_gb}, so LMCache and its Valkey server need"
            f" {tier.needed_bytes / 2**30:.0f} GB of free memory together, but this machine has"
            f" {free_bytes / 2**30:.1f} GB."
        )
    return tier


def build_kv_tier_services(
    settings: KvTierSettings,
    *,
    paths: EmbeddedPaths,
    environment: Mapping[str, str],
    tag_environment: dict[str, str],
) -> tuple[Service, ...]:
    """Return the services in the order of their start.

    Raises MissingFeature if LMCache is not installed.
    """
    if importlib.util.find_spec("lmcache") is None:
        raise MissingFeature(
            f"{_SETTING} is set, but LMCache is not installed. `make up` installs it; without make,"
            " run platform/scripts/setup with this setting."
        )
    store = EmbeddedValkey(
        paths,
        server=KV_STORE,
        tag_environment=tag_environment,
        settings=make_store_settings(settings),
    )
    return (store, _build_lmcache_service(settings, paths=paths, environment=environment))


def make_store_settings(settings: KvTierSettings) -> dict[str, str]:
    """Return the Valkey server's settings: a cache of limited size that stores nothing on disk."""
    return {
        "port": str(settings.store_port.number),
        "bind": LOOPBACK,
        "appendonly": "no",
        "maxmemory": f"{settings.size_gb}gb",
        "maxmemory-policy": "allkeys-lru",
    }


def _build_lmcache_service(
    settings: KvTierSettings, *, paths: EmbeddedPaths, environment: Mapping[str, str]
) -> CommandService:
    def make_spec() -> ChildSpec:
        return ChildSpec(
            name="LMCache",
            command=dying_with_parent(lmcache_command(settings)),
            log_file=paths.logs / "lmcache.log",
            environment={
                **engine_environment(
                    environment,
                    has_gpu=settings.hardware is Hardware.GPU,
                    has_model_folder=True,  # LMCache downloads no model
                ),
                "LMCACHE_DISABLE_BANNER": "1",
                "LMCACHE_RESP_PASSWORD": read_password(paths, KV_STORE),
            },
            stop_grace_s=_STOP_GRACE_S,
        )

    return CommandService(
        make_spec=make_spec,
        ready_check=lambda: is_responding(f"{settings.http_port.url}/healthcheck"),
        name="LMCache",
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def lmcache_command(settings: KvTierSettings) -> tuple[str, ...]:
    store = {"type": "resp", "host": LOOPBACK, "port": settings.store_port.number}
    # By default, LMCache reads the engine's memory through CUDA, which a CPU does not have.
    is_cpu = settings.hardware is Hardware.CPU
    transfer_mode = ("--supported-transfer-mode", "engine_driven") if is_cpu else ()
    # fmt: off
    return (
        sys.executable, "-m", "lmcache.cli.main", "server",
        "--host", LOOPBACK, "--port", str(settings.port.number),
        "--http-host", LOOPBACK, "--http-port", str(settings.http_port.number),
        "--disable-metrics",
        "--l1-size-gb", str(settings.size_gb), "--eviction-policy", "LRU",
        "--chunk-size", str(_CHUNK_TOKENS),
        *transfer_mode,
        "--l2-adapter", json.dumps(store),
    )
    # fmt: on
