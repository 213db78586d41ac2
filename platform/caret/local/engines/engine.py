"""A vLLM server on the loopback address, for this machine's CPU or GPU.

Its flags come from the profile of its tier (`profiles.py`).
"""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting, env_text
from caret.local.engines.engine_args import (
    EngineArguments,
    drop_speculation,
    parse_engine_arguments,
)
from caret.local.engines.engine_plan import is_built_for_gpu
from caret.local.engines.profiles import (
    QUANTIZATION_FLAG,
    SPECULATION_FLAG,
    Hardware,
    find_profile,
    find_speculation,
)
from caret.local.engines.weights import require_complete_weights
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.ports import LOOPBACK
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.service import CommandService

DEMO_MODEL = REPOSITORY / "inference" / "demo_model" / "weights"
MAX_CONTEXT_TOKENS = 4608  # fits a prompt of 4,000 tokens and a completion of 512
# At the first start, the engine may download a large model.
_READY_TIMEOUT_S = 900.0
_STOP_GRACE_S = 10.0
# Time for streams in flight to finish after SIGTERM. With vLLM's default of 0, they hang.
_SHUTDOWN_TIMEOUT_S = 3
# When vLLM fails, each of its processes logs an error as it stops. The first error names the cause:
#     (Worker pid=7) ERROR 11-26 13:51:15 [multiproc_executor.py:953] package.SomeError: the cause
#     api_server.py: error: the cause
# The details of a ValidationError are in the next line, and may end with ` [type=...]`.
_CAUSE: Final = re.compile(
    r"^(?:\([^)]*\) )?(?:ERROR \S+ \S+ \[\S+\] )?"
    r"(?:(?:\w+\.)*\w+(?:Error|Exception): |\S+: error: )"
    r"(?:\d+ validation errors? for \w+\n\s*(?:Value error, )?)?(.+?)(?: \[type=.*)?$",
    re.MULTILINE,
)
_MAX_CAUSE_CHARS: Final = 240


@dataclass(frozen=True, slots=True)
class LocalModel:
    path: str  # a directory, or a name on Hugging Face's model hub
    served_name: str

    @property
    def is_demo(self) -> bool:
        return self.path == str(DEMO_MODEL)

    @property
    def is_folder(self) -> bool:
        return Path(self.path).is_dir()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    model: LocalModel
    port: int
    hardware: Hardware
    profile: Tier
    # CARET_ENGINE_ARGS: the user's own arguments, which override the profile.
    extra_arguments: tuple[str, ...] = ()
    gpu_memory_percent: int | None = None  # of the GPU's memory; None: vLLM's default
    speculates: bool | None = None  # with speculative decoding; None: as in the profile
    kv_tier_arguments: tuple[str, ...] = ()  # of the KV tier that `up` starts

    @property
    def name(self) -> str:
        """The service's name, as the terminal shows it."""
        if self.profile is Tier.QUALITY:
            return "Quality engine"
        return "Speculating engine" if self.speculates else "Engine"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that determine the engine's speed.

        The arguments of the profile come first, and CARET_ENGINE_ARGS last.
        """
        flags = find_profile(self.profile, self.hardware)
        profile_arguments = (
            flag.arguments for flag in flags if flag.flag not in self._dropped_flags
        )
        percent = self.gpu_memory_percent if self.hardware is Hardware.GPU else None
        memory = () if percent is None else ("--gpu-memory-utilization", str(percent / 100))
        speculation = find_speculation().arguments if self._adds_speculation else ()
        return (
            *chain.from_iterable(profile_arguments),
            *memory,
            *speculation,
            *self.kv_tier_arguments,
            *self._own_arguments,
        )

    @property
    def _own_arguments(self) -> tuple[str, ...]:
        """The user's own arguments, without speculative decoding if `speculates` is False."""
        if self.speculates is False:
            return drop_speculation(self.extra_arguments)
        return self.extra_arguments

    @property
    def _has_own_speculation(self) -> bool:
        return parse_engine_arguments(self.extra_arguments, {}).speculation is not None

    @property
    def _adds_speculation(self) -> bool:
        return self.speculates is True and not self._has_own_speculation

    @property
    def _dropped_flags(self) -> set[str]:
        """The profile's flags that do not suit the model, or that other settings replace."""
        # The demonstration model has 14 MB of weights: FP8 would save nothing.
        quantization = {QUANTIZATION_FLAG} if self.model.is_demo else set()
        is_replaced = self.speculates is not None or self._has_own_speculation
        return quantization | ({SPECULATION_FLAG} if is_replaced else set())

    @property
    def parsed_arguments(self) -> EngineArguments:
        # {}: `engine_from_environment` has already checked the environment's variables.
        return parse_engine_arguments(self.arguments, {})

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def entry(self) -> dict[str, str | int]:
        """The replica's entry in the pools file."""
        arguments = self.parsed_arguments
        entry: dict[str, str | int] = {"url": self.url}
        if arguments.speculation is not None:
            entry["speculation"] = arguments.speculation.value
        if arguments.max_cached_requests is not None:
            entry["suffix_decoding_max_cached_requests"] = arguments.max_cached_requests
        if arguments.max_num_seqs is not None:
            entry["max_num_seqs"] = arguments.max_num_seqs
        if arguments.kv_connector is not None:
            entry["kv_connector"] = arguments.kv_connector
        return entry


def engine_from_environment(port: int, *, profile: Tier = Tier.FAST) -> EngineSettings:
    """Read the settings of the engine.

    Raises BadSetting.
    """
    try:
        arguments = tuple(shlex.split(env_text("CARET_ENGINE_ARGS", "")))
    except ValueError as error:
        raise BadSetting(f"CARET_ENGINE_ARGS cannot be split into arguments: {error}.") from error
    parse_engine_arguments(arguments, os.environ)  # only for its checks
    return EngineSettings(
        model=_read_model(env_text("CARET_MODEL", str(DEMO_MODEL))),
        port=port,
        hardware=Hardware.GPU if is_built_for_gpu() else Hardware.CPU,
        profile=profile,
        extra_arguments=arguments,
    )


def build_engine_service(
    settings: EngineSettings, *, paths: EmbeddedPaths, environment: Mapping[str, str]
) -> CommandService:
    spec = ChildSpec(
        name=settings.name,
        command=dying_with_parent(engine_command(settings)),
        log_file=paths.logs / f"{settings.name.lower().replace(' ', '-')}.log",
        environment=engine_environment(
            environment,
            has_gpu=settings.hardware is Hardware.GPU,
            has_model_folder=settings.model.is_folder,
        ),
        stop_grace_s=_STOP_GRACE_S,
        find_cause=find_cause,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_responding(f"{settings.url}/health"),
        name=settings.name,
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def find_cause(log: str) -> str | None:
    """Return the reason why vLLM did not start, as a sentence; None if its log names no error."""
    match = _CAUSE.search(log)
    if match is None:
        return None
    cause = match.group(1).rstrip().rstrip(".")
    return f"{cause}." if len(cause) < _MAX_CAUSE_CHARS else f"{cause[:_MAX_CAUSE_CHARS]}..."


def engine_command(settings: EngineSettings) -> tuple[str, ...]:
    # fmt: off
    return (
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--model", settings.model.path,
        "--served-model-name", settings.model.served_name,
        "--host", LOOPBACK, "--port", str(settings.port),
        "--max-model-len", str(MAX_CONTEXT_TOKENS),
        "--shutdown-timeout", str(_SHUTDOWN_TIMEOUT_S),
        *settings.arguments,
    )
    # fmt: on


# Targets for load shedding on a machine without a GPU: 12.5 times the gateway's defaults. Without a
# GPU, a cold prompt takes seconds even on an idle engine, and few users share the engine.
_CPU_TARGETS_MS = {"INLINE": 1_000, "FIM": 1_500, "BLOCK": 5_000, "CHAT": 20_000}


def first_token_targets(settings: EngineSettings) -> dict[str, str]:
    """Return environment variables with targets for the gateway; the user's own override them.

    With a GPU, return none: the gateway's defaults apply.
    """
    if settings.hardware is Hardware.GPU:
        return {}
    return {
        f"CARET_FIRST_TOKEN_TARGET_{mode}_MS": str(target)
        for mode, target in _CPU_TARGETS_MS.items()
    }


# An engine may run code that came with its model, so it gets no secrets of Caret. These are
# prefixes of names of variables: names such as DATABASE_URL_FILE are excluded, too.
_SECRETS = (
    *("CARET_ROOT_SECRET", "DATABASE_URL", "CARET_OWNER_DATABASE_URL", "CARET_BACKUP_DATABASE_URL"),
    *("REDIS_URL", "CARET_HOME_REGION_REDIS_URL", "CARET_SMTP_URL"),
    *("CARET_API_KEY", "CARET_SERVICE_KEY", "CARET_STRIPE_KEY", "CARET_LEAK_REPORT_SECRET"),
)


def engine_environment(
    base: Mapping[str, str], *, has_gpu: bool, has_model_folder: bool
) -> dict[str, str]:
    """Return the engine's environment, without secrets of Caret.

    Variables that the user has set override ours.
    """
    environment = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_LOGGING_COLOR": "0"}
    if has_model_folder:
        environment["HF_HUB_OFFLINE"] = "1"  # nothing must be downloaded
    if not has_gpu:
        environment |= _cpu_environment()
    return environment | {
        name: value for name, value in base.items() if not name.startswith(_SECRETS)
    }


def _cpu_environment() -> dict[str, str]:
    num_cores = len(os.sched_getaffinity(0))
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1"}  # GiB
    if num_cores <= 4:  # leave a core for the gateway; on larger machines vLLM decides
        environment |= {
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(max(1, num_cores - 1)),
            # The model runs in the scheduler's process. A worker process of its own would import
            # vLLM again, and each step would pass a message to it. On a CPU, vLLM only starts one
            # to give it OpenMP's variables. Here, the whole engine gets them.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        }
    return environment


def _read_model(path: str) -> LocalModel:
    if path == str(DEMO_MODEL):
        return LocalModel(path=path, served_name="demo")
    if path.startswith(("/", ".", "~")) and not Path(path).expanduser().is_dir():
        raise BadSetting(f"CARET_MODEL is {path!r}, but this folder does not exist.")
    folder = Path(path).expanduser()
    if folder.is_dir():
        require_complete_weights(folder)
        return LocalModel(path=str(folder.resolve()), served_name=folder.resolve().name)
    return LocalModel(path=path, served_name=path)
