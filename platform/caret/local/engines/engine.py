"""One vLLM server on the loopback address, for this machine's CPU or GPU.

ADR 0012 explains the arguments.
"""

import importlib.metadata
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from caret.foundation.environment import BadSetting, env_text
from caret.local.engines.engine_args import NO_ENGINE_ARGUMENTS, EngineArguments, check_arguments
from caret.local.engines.pools_file import ReplicaEntry
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.ports import LOOPBACK
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import answers_ok
from caret.local.processes.service import CommandService

DEMO_MODEL = REPOSITORY / "inference" / "demo_model" / "weights"
MAX_CONTEXT_TOKENS = 4608
# At its first start, a large model is loaded over the network.
_READY_TIMEOUT_S = 900.0
_STOP_GRACE_S = 10.0
# Time for streams in flight to finish after SIGTERM; with vLLM's default of 0 they hang.
_SHUTDOWN_TIMEOUT_S = 3


@dataclass(frozen=True, slots=True)
class LocalModel:
    path: str  # a directory, or a name on the model hub
    served_name: str
    has_token_healing: bool = True  # False: it continues in mid-word (see the catalogue of pools)

    @property
    def is_folder(self) -> bool:
        return Path(self.path).is_dir()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    model: LocalModel
    port: int
    has_gpu: bool
    extra_arguments: tuple[str, ...] = field(default=())  # CARET_ENGINE_ARGS, which override ours
    stated: EngineArguments = NO_ENGINE_ARGUMENTS  # parsed from these arguments

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def entry(self) -> ReplicaEntry:
        """The replica's entry in the catalogue of pools."""
        return self.url if self.stated.speculation is None else self.table

    @property
    def table(self) -> dict[str, str | int]:
        """The long form of the entry."""
        table: dict[str, str | int] = {"url": self.url}
        if self.stated.speculation is not None:
            table["speculation"] = self.stated.speculation.value
        if self.stated.max_cached_requests is not None:
            table["suffix_decoding_max_cached_requests"] = self.stated.max_cached_requests
        return table


def engine_from_environment(port: int) -> EngineSettings:
    """Read the settings of the engine.

    Raises BadSetting.
    """
    arguments = tuple(shlex.split(env_text("CARET_ENGINE_ARGS", "")))
    return EngineSettings(
        model=_read_model(env_text("CARET_MODEL", str(DEMO_MODEL))),
        port=port,
        has_gpu=is_built_for_gpu(),
        extra_arguments=arguments,
        stated=check_arguments(arguments, os.environ),
    )


def engine_service(
    settings: EngineSettings, *, paths: EmbeddedPaths, environment: Mapping[str, str]
) -> CommandService:
    spec = ChildSpec(
        name="Engine",
        command=dying_with_parent(engine_command(settings)),
        log_file=paths.logs / "engine.log",
        environment=engine_environment(
            environment, has_gpu=settings.has_gpu, has_model_folder=settings.model.is_folder
        ),
        stop_grace_s=_STOP_GRACE_S,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: answers_ok(f"{settings.url}/health"),
        name="Engine",
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def engine_command(settings: EngineSettings) -> tuple[str, ...]:
    # fmt: off
    return (
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--model", settings.model.path,
        "--served-model-name", settings.model.served_name,
        "--host", LOOPBACK, "--port", str(settings.port),
        "--max-model-len", str(MAX_CONTEXT_TOKENS),
        "--enable-prefix-caching", "--enable-prompt-tokens-details",
        "--scheduling-policy", "priority",
        # These bound the time to cancel, and the delay that a long prompt causes to other requests.
        "--max-num-batched-tokens", "512", "--long-prefill-token-threshold", "128",
        # A full queue rejects requests at once, and the gateway tells the client (`engine_busy`).
        "--max-num-queued-reqs", "256", "--max-num-queued-tokens", "262144",
        # No prompt text in any log.
        "--no-enable-log-requests", "--disable-uvicorn-access-log",
        "--generation-config", "vllm",
        "--shutdown-timeout", str(_SHUTDOWN_TIMEOUT_S),
        *(_GPU_ARGUMENTS if settings.has_gpu else _CPU_ARGUMENTS),
        *settings.extra_arguments,
    )
    # fmt: on


# 32 tokens is the smallest block of the CPU build; smaller blocks leave fewer tokens uncached.
_CPU_ARGUMENTS = ("--block-size", "32", "--enforce-eager")
_GPU_ARGUMENTS = ("--block-size", "16")


# Targets for load shedding on a machine without a GPU. There a cold prompt takes seconds even on an
# idle engine, and few users share it. The production defaults (gateway) times 12.5.
_CPU_TARGETS_MS = {"INLINE": 1_000, "FIM": 1_500, "BLOCK": 5_000, "CHAT": 20_000}


def first_token_targets(settings: EngineSettings) -> dict[str, str]:
    """Return the gateway's targets for this engine; explicit settings override them."""
    if settings.has_gpu:
        return {}
    return {
        f"CARET_FIRST_TOKEN_TARGET_{mode}_MS": str(target)
        for mode, target in _CPU_TARGETS_MS.items()
    }


# An engine runs code that came with its model, so it gets no database URLs and keys. Each variable
# may also end in _FILE.
_SECRETS = (
    "CARET_ROOT_SECRET",
    "DATABASE_URL",
    "CARET_OWNER_DATABASE_URL",
    "REDIS_URL",
    "CARET_API_KEY",
)


def engine_environment(
    base: Mapping[str, str], *, has_gpu: bool, has_model_folder: bool
) -> dict[str, str]:
    """Return the engine's environment, without secrets of other services.

    Variables that the user has set override ours.
    """
    ours = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_LOGGING_COLOR": "0"}
    if has_model_folder:
        ours["HF_HUB_OFFLINE"] = "1"
    if not has_gpu:
        ours |= _cpu_environment()
    return ours | {name: value for name, value in base.items() if not name.startswith(_SECRETS)}


def _cpu_environment() -> dict[str, str]:
    num_cores = len(os.sched_getaffinity(0))
    ours = {"VLLM_CPU_KVCACHE_SPACE": "1"}
    if num_cores <= 4:  # leave a core for the gateway; on larger machines vLLM decides
        ours |= {
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(max(1, num_cores - 1)),
        }
    return ours


def _read_model(path: str) -> LocalModel:
    if path == str(DEMO_MODEL):
        # Its prefixes and middles were tokenized separately (see its model card).
        return LocalModel(path=path, served_name="demo", has_token_healing=False)
    if path.startswith(("/", ".", "~")) and not Path(path).expanduser().is_dir():
        raise BadSetting(f"CARET_MODEL is {path!r}, but this folder does not exist.")
    folder = Path(path).expanduser()
    if folder.is_dir():
        return LocalModel(path=str(folder.resolve()), served_name=folder.resolve().name)
    return LocalModel(path=path, served_name=path)


def is_built_for_gpu() -> bool:
    """Return whether platform/scripts/setup has installed the GPU build."""
    try:
        importlib.metadata.distribution("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return True
    return False
