"""The engines that are measured, one at a time: a profile, and a model with random weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from caret.contracts.policy import Tier
from caret.local.engines.engine import EngineSettings, LocalModel, build_engine_service
from caret.local.engines.engine_plan import is_built_for_gpu
from caret.local.engines.pools_file import render_pools
from caret.local.engines.profiles import Hardware, find_profile
from caret.local.paths import REPOSITORY
from tests.benchmarks.engine_streams import EngineAddress
from tests.benchmarks.installation import create_home, started
from tests.gpu.scale import Scale
from tests.gpu.shapes import write_model
from tests.stack.ports import free_port

# vLLM's caches of compiled code depend on the model's path, so it is the same in each call.
_MODELS: Final = REPOSITORY / ".caret" / "gpu" / "models"
_BLOCK_SIZE: Final = "--block-size"
_SPARE_TOKENS: Final = 500
# Host memory for offloaded KV blocks. A round of kv_offload has four prompts of 6,000 tokens. For
# the 7B model, they take 1.4 GB.
_HOST_BYTES: Final = 4 << 30


@dataclass(frozen=True, slots=True)
class EngineVariant:
    name: str
    tier: Tier  # of the profile
    speculates: bool | None = None  # None: as the profile says
    # Offloads KV blocks to host memory. The engine's own KV cache has room for two prompts only.
    offloads: bool = False


# The CPU profile `fast` has no speculation; the variant has it nevertheless, to run the same steps.
FAST: Final = EngineVariant("fast", Tier.FAST, speculates=True)
FAST_PLAIN: Final = EngineVariant("fast-plain", Tier.FAST, speculates=False)
QUALITY: Final = EngineVariant("quality", Tier.QUALITY)
QUALITY_OFFLOAD: Final = EngineVariant("quality-offload", Tier.QUALITY, offloads=True)
VARIANTS: Final[Mapping[str, EngineVariant]] = {
    variant.name: variant for variant in (FAST, FAST_PLAIN, QUALITY, QUALITY_OFFLOAD)
}


@dataclass(frozen=True, slots=True)
class RunningEngine:
    settings: EngineSettings
    scale: Scale

    @property
    def url(self) -> str:
        return self.settings.url

    @property
    def address(self) -> EngineAddress:
        return EngineAddress(self.url, self.settings.model.served_name)

    def render_pools(self, replica_url: str) -> str:
        """Return a gateway's pools file, in which the engine serves both tiers."""
        model = self.settings.model
        pools = []
        # The first tier, fast, gets the short prompts, and the tier quality the long ones.
        for tier, prompt_tokens in zip(Tier, self.scale.prompt_tokens, strict=True):
            pool = render_pools(
                model=model.served_name,
                tokenizer=model.path,
                max_context_tokens=self.scale.max_model_tokens,
                replicas={tier.value: [self.settings.entry | {"url": replica_url}]},
            )
            # A gateway truncates prompts to the pool's prompt_tokens. This limit is larger than the
            # prompts of the steps, so that none is truncated.
            pools.append(f"{pool}prompt_tokens = {prompt_tokens + _SPARE_TOKENS}\n")
        return "\n".join(pools)


@contextmanager
def running_engine(
    variant: EngineVariant, scale: Scale, *, max_start_s: float
) -> Iterator[RunningEngine]:
    """Start the engine.

    Raises ServiceFailed if it does not start in time.
    """
    settings = make_settings(variant, scale)
    write_model(scale.shapes[variant.tier], Path(settings.model.path))
    with create_home() as home:
        service = build_engine_service(settings, paths=home.paths, environment=home.environment)
        with started(replace(service, ready_timeout_s=max_start_s)):
            yield RunningEngine(settings, scale)


def make_settings(variant: EngineVariant, scale: Scale) -> EngineSettings:
    hardware = Hardware.GPU if is_built_for_gpu() else Hardware.CPU
    shape = scale.shapes[variant.tier]
    # fmt: off
    arguments = (
        "--load-format", "dummy",
        "--max-model-len", str(scale.max_model_tokens),
        *(_offloading_arguments(variant.tier, hardware, scale) if variant.offloads else ()),
    )
    # fmt: on
    return EngineSettings(
        model=LocalModel(str(_MODELS / shape.name), shape.name),
        port=free_port(),
        hardware=hardware,
        profile=variant.tier,
        extra_arguments=arguments,
        speculates=variant.speculates,
    )


def _offloading_arguments(tier: Tier, hardware: Hardware, scale: Scale) -> tuple[str, ...]:
    flags = find_profile(tier, hardware)
    block_tokens = next(int(flag.value or 0) for flag in flags if flag.flag == _BLOCK_SIZE)
    num_blocks = 2 * scale.max_model_tokens // block_tokens  # of two prompts
    small_cache = ("--num-gpu-blocks-override", str(num_blocks))
    if hardware is Hardware.CPU:  # vLLM's CPU build has no offloading
        return small_cache
    config: dict[str, Any] = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"cpu_bytes_to_use": _HOST_BYTES},
    }
    return (*small_cache, "--kv-transfer-config", msgspec.json.encode(config).decode())
