"""KV tiers with the real engine: a connector restores a tenant's KV blocks for this tenant only.

A KV tier keeps the KV blocks of the prefix cache outside of the engine. LMCache keeps them in host
memory and in Valkey (the Redis protocol). The key of each block contains the tenant's cache salt.

LMCache needs other package versions than this repository's lock file, so it is installed on its
own:

    .venv/bin/uv pip install --no-deps --require-hashes -r platform/locks/kv-tier.txt
"""

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from caret.local.databases.credentials import read_password
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.engine import (
    EngineSettings,
    engine_command,
    engine_environment,
    engine_from_environment,
)
from caret.local.engines.engine_args import parse_engine_arguments
from caret.local.errors import ServiceFailed
from caret.local.ports import LOOPBACK
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.process_tag import tag_environment
from caret.local.processes.service import CommandService, await_ready
from tests.benchmarks.installation import Home, create_home, started
from tests.stack.ports import free_port, free_ports

pytestmark = [pytest.mark.engine, pytest.mark.deep]
_READY_TIMEOUT_S: Final = 600.0
_NUM_TOKENS: Final = 1_500
_BLOCK_TOKENS: Final = 32  # --block-size of the CPU profiles
_OFFLOADING_ERROR: Final = "CPU Offloading is currently only supported on CUDA-alike and XPU GPUs"
_HAS_LMCACHE: Final = importlib.util.find_spec("lmcache") is not None
# With a fixed seed, the keys of blocks stay the same when the engine and LMCache restart.
_FIXED_HASH_SEED: Final = {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class TieredEngine:
    """An engine with a KV connector, started without Caret's check of the connector."""

    settings: EngineSettings
    home: Home
    arguments: tuple[str, ...]

    def make_service(self) -> CommandService:
        environment = engine_environment(
            self.home.environment, has_gpu=False, has_model_folder=True
        )
        spec = ChildSpec(
            name="Engine",
            command=dying_with_parent((*engine_command(self.settings), *self.arguments)),
            log_file=self.log_file,
            environment=environment | _FIXED_HASH_SEED,
        )
        return CommandService(
            make_spec=lambda: spec,
            ready_check=lambda: is_responding(f"{self.settings.url}/health"),
            name="Engine",
            ready_timeout_s=_READY_TIMEOUT_S,
        )

    @property
    def log_file(self) -> Path:
        return self.home.paths.logs / "engine.log"

    async def count_cached_tokens(self, salt: str) -> int:
        """Send a prompt and return the number of its tokens that the engine did not compute."""
        body = {
            "model": self.settings.model.served_name,
            # Arbitrary IDs of ordinary tokens.
            "prompt": [7 * number % 4_000 + 20 for number in range(_NUM_TOKENS)],
            "max_tokens": 1,
            "cache_salt": salt,
        }
        async with (
            aiohttp.ClientSession(self.settings.url) as session,
            session.post("/v1/completions", json=body) as response,
        ):
            answer: dict[str, Any] = await response.json()
        return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"] or 0)


def _make_engine(home: Home, *arguments: str) -> TieredEngine:
    home.paths.logs.mkdir(parents=True, exist_ok=True)
    return TieredEngine(engine_from_environment(free_port()), home, arguments)


def _connector(name: str, **config: Any) -> tuple[str, str]:
    transfer = {"kv_connector": name, "kv_role": "kv_both", "kv_connector_extra_config": config}
    return "--kv-transfer-config", json.dumps(transfer)


@dataclass(frozen=True, slots=True)
class LmCache:
    """LMCache's server: host memory in front of Valkey."""

    home: Home
    port: int
    valkey_port: int

    @contextmanager
    def run(self) -> Iterator[None]:
        http_port, metrics_port = free_ports(2)
        tier = {"type": "resp", "host": LOOPBACK, "port": self.valkey_port}
        # fmt: off
        command = (
            sys.executable, "-m", "lmcache.cli.main", "server",
            "--host", LOOPBACK, "--port", str(self.port),
            "--http-host", LOOPBACK, "--http-port", str(http_port),
            "--prometheus-port", str(metrics_port),
            "--l1-size-gb", "1", "--eviction-policy", "LRU", "--chunk-size", str(_BLOCK_TOKENS),
            "--supported-transfer-mode", "engine_driven", "--l2-adapter", json.dumps(tier),
        )
        # fmt: on
        spec = ChildSpec(
            name="LMCache",
            command=dying_with_parent(command),
            log_file=self.home.paths.logs / "lmcache.log",
            environment={
                **self.home.environment,
                "LMCACHE_TRACK_USAGE": "false",
                "LMCACHE_RESP_PASSWORD": read_password(self.home.paths, "valkey"),
                **_FIXED_HASH_SEED,
            },
        )
        service = CommandService(
            make_spec=lambda: spec,
            ready_check=lambda: is_responding(f"http://{LOOPBACK}:{http_port}/healthcheck"),
            name="LMCache",
            ready_timeout_s=_READY_TIMEOUT_S,
        )
        with started(service):
            yield


@pytest.mark.skipif(not _HAS_LMCACHE, reason="LMCache is missing; see this module's docstring")
async def test_a_tenants_blocks_survive_a_restart_and_serve_no_other_tenant() -> None:
    with ExitStack() as stack:
        home = stack.enter_context(create_home())
        lmcache = LmCache(home, *free_ports(2))
        valkey = {"port": str(lmcache.valkey_port), "bind": LOOPBACK, "maxmemory": "1gb"}
        stack.enter_context(
            EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag), settings=valkey)
        )
        address = {"lmcache.mp.host": f"tcp://{LOOPBACK}", "lmcache.mp.port": lmcache.port}
        arguments = _connector("LMCacheMPConnector", **address)
        parse_engine_arguments(arguments, {})  # Caret allows this connector
        engine = _make_engine(home, *arguments)

        with lmcache.run(), started(engine.make_service()):
            first = await engine.count_cached_tokens("acme")
        with lmcache.run(), started(engine.make_service()):
            other_tenant = await engine.count_cached_tokens("globex")
            returned = await engine.count_cached_tokens("acme")

    assert first == 0
    assert other_tenant == 0
    # All complete blocks, or all but one. The last block is incomplete.
    assert returned >= _NUM_TOKENS - 2 * _BLOCK_TOKENS


def test_the_cpu_build_of_vllm_reports_that_it_cannot_offload_to_host_memory() -> None:
    with create_home() as home:
        engine = _make_engine(home, "--kv-offloading-size", "1")
        service = engine.make_service()
        service.launch()
        try:
            with pytest.raises(ServiceFailed):
                await_ready(service)
        finally:
            service.child.stop()

        assert _OFFLOADING_ERROR in engine.log_file.read_text()
