"""Checks of the machine for `platform/scripts/setup`: Python, processor, GPU.

Standard library only, like the script itself.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# Exit codes of the script.
BAD_SETTING, NO_DISK_SPACE, MISSING_FEATURE, FAILED, INTERRUPTED = 2, 4, 5, 6, 130


class Refusal(Exception):
    """The reason why Caret cannot be installed."""

    def __init__(self, sentence: str, code: int, *, output: str = "") -> None:
        super().__init__(sentence)
        self.code = code  # exit code of the script
        self.output = output  # of the command that failed; "": no command failed


def ensure_suitable_python() -> None:
    """Run the script again with Python 3.11 or 3.12 if this Python has another version.

    Raises Refusal if there is no such Python on the PATH.
    """
    if (3, 11) <= sys.version_info[:2] < (3, 13):
        return
    for name in ("python3.11", "python3.12"):
        if shutil.which(name):
            os.execvp(name, [name, *sys.argv])  # noqa: S606  # runs this program again, without a shell
    raise Refusal(
        f"Caret needs Python 3.11 or 3.12. This is {platform.python_version()}, and neither"
        " python3.11 nor python3.12 is on the PATH. Install one of them.",
        BAD_SETTING,
    )


def choose_interpreter() -> str:
    """Return the path of the Python for `.venv`: this one, or a faster one of the same version.

    Compiled without `--enable-optimizations` (profile-guided optimization), as pyenv does by
    default, Python needs 9 to 16% more CPU time for a gateway (platform/docs/benchmarks.md). Linux
    distributions compile theirs with it.
    """
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    if "--enable-optimizations" in options or sys.base_prefix == "/usr":
        return sys.executable
    candidate = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    try:
        subprocess.run([candidate, "-c", "import ensurepip, venv"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return sys.executable
    print(f"Using {candidate}, because {sys.executable} was compiled without optimizations.")
    return candidate


def choose_engine() -> str:
    """Return the build of vLLM to install: cpu or gpu. Raises Refusal.

    CARET_ENGINE names it. Without this variable, a machine with an NVIDIA driver gets gpu.
    """
    engine = os.environ.get("CARET_ENGINE") or ("gpu" if has_nvidia_driver() else "cpu")
    if engine not in ("cpu", "gpu"):
        raise Refusal(
            f"CARET_ENGINE is {engine!r}. Set it to cpu or gpu, or remove it.", BAD_SETTING
        )
    if engine == "gpu" and not has_nvidia_driver():
        raise Refusal(
            "CARET_ENGINE is gpu, but this machine has no NVIDIA driver. Install the driver, or"
            " remove the setting.",
            MISSING_FEATURE,
        )
    return engine


def has_nvidia_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def check_processor(*, runs_engine: bool) -> None:
    """Check the operating system and the processor. Raises Refusal.

    `runs_engine`: the engine will run on the processor, without a GPU.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        raise Refusal(
            f"Caret needs Linux on x86_64 or aarch64. This is {sys.platform} on {machine}.",
            MISSING_FEATURE,
        )
    if runs_engine and machine == "x86_64" and not has_avx2():
        raise Refusal(
            "This processor has no AVX2. The engine for machines without a GPU needs it.",
            MISSING_FEATURE,
        )


def has_avx2() -> bool:
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return flags is not None and "avx2" in flags.group(1).split()


def check_venv_module() -> None:
    """Check that this Python can create virtual environments. Raises Refusal."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise Refusal(
            "This Python cannot create virtual environments: its module venv or ensurepip is"
            " missing. On Debian and Ubuntu: apt install python3-venv",
            MISSING_FEATURE,
        ) from None
