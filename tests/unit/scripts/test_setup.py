"""`platform/scripts/setup`, which installs Caret's packages before any of them can be imported.

A lock is a list of packages with their versions: light, cpu, dev or gpu. The script writes a stamp,
a file that records which lock is installed. The numbers 2, 4, 5 and 6 are the script's exit codes.
"""

import contextlib
import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from caret.local.paths import REPOSITORY


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script as a module that uses `tmp_path` as the repository."""
    script = REPOSITORY / "platform" / "scripts" / "setup"
    monkeypatch.syspath_prepend(script.parent)
    loader = importlib.machinery.SourceFileLoader("caret_setup", str(script))
    module = ModuleType("caret_setup")
    module.__file__ = str(script)
    loader.exec_module(module)
    locks = tmp_path / "platform" / "locks"
    locks.mkdir(parents=True)
    for name in ("light", "cpu", "dev", "gpu", "kv-tier"):
        (locks / f"{name}.txt").write_text("torch==1 \\\n    --hash=sha256:aa\nuv==2\n")
    language_server = tmp_path / "platform" / "ide"
    language_server.mkdir()
    for folder in (tmp_path, language_server):
        (folder / "pyproject.toml").touch()
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, value in {
        "REPOSITORY": tmp_path,
        "VENV": venv,
        "PYTHON": venv / "bin" / "python",
        "STAMP": venv / "caret-setup.json",
        "LOCKS": locks,
        "KV_TIER_LOCK": locks / "kv-tier.txt",
        "KV_TIER_STAMP": venv / "caret-kv-tier.txt",
        "LANGUAGE_SERVER": language_server,
        "LOGS": logs,
        "LOG": logs / "setup.log",
    }.items():
        setattr(module, name, value)
    return module


def test_without_a_stamp_nothing_counts_as_installed(setup: Any) -> None:
    assert not setup.is_installed("cpu")


def test_a_stamp_means_that_the_lock_is_installed(setup: Any) -> None:
    setup.write_stamp("cpu")

    assert setup.is_installed("cpu")


@pytest.mark.parametrize(
    ("installed", "requested", "is_enough"),
    [
        ("dev", "cpu", True),
        ("gpu", "dev", True),
        ("cpu", "dev", False),
        ("dev", "gpu", False),
        ("dev", "light", True),
        ("gpu", "light", True),
        ("light", "dev", False),
        ("cpu", "light", False),
    ],
)
def test_a_larger_installation_satisfies_a_smaller_request(
    setup: Any, installed: str, requested: str, is_enough: bool
) -> None:
    setup.write_stamp(installed)

    assert setup.is_installed(requested) is is_enough


def test_a_changed_lock_is_installed_again(setup: Any) -> None:
    setup.write_stamp("cpu")

    (setup.LOCKS / "cpu.txt").write_text("torch==2\n")

    assert not setup.is_installed("cpu")


def test_a_changed_language_server_is_installed_again(setup: Any) -> None:
    setup.write_stamp("dev")

    (setup.LANGUAGE_SERVER / "pyproject.toml").write_text("[project]\n")

    assert not setup.is_installed("dev")


@pytest.mark.parametrize(("lock", "is_included"), [("cpu", False), ("dev", True), ("gpu", True)])
def test_the_language_server_is_not_installed_with_the_lock_cpu(
    setup: Any, lock: str, is_included: bool
) -> None:
    assert (str(setup.LANGUAGE_SERVER) in setup.list_editables(lock)) is is_included


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"lock": "other"}'])
def test_a_broken_stamp_is_ignored(setup: Any, text: str) -> None:
    setup.STAMP.write_text(text)

    assert not setup.is_installed("cpu")


def test_an_environment_without_its_python_is_not_installed(setup: Any) -> None:
    setup.write_stamp("cpu")
    setup.PYTHON.unlink()
    setup.PYTHON.symlink_to("/no/such/python")

    assert not setup.is_installed("cpu")
    assert not setup.has_working_pip()


def test_a_partially_unpacked_package_is_removed(setup: Any) -> None:
    site = setup.VENV / "lib" / "python3.11" / "site-packages"
    # Pip writes a package's RECORD last. Until then, the wheel's RECORD may be there, which does
    # not list the file INSTALLER.
    for name, record in {"whole": "a.py,,\nINSTALLER,sha256=x,4\n", "half": "a.py,,\n"}.items():
        (site / f"{name}-1.dist-info").mkdir(parents=True)
        (site / f"{name}-1.dist-info" / "RECORD").write_text(record)
    (site / "empty-1.dist-info").mkdir()

    setup.remove_partial_packages()

    assert [folder.name for folder in site.iterdir()] == ["whole-1.dist-info"]


def test_removing_partial_packages_removes_the_stamp(setup: Any) -> None:
    setup.write_stamp("cpu")

    setup.remove_partial_packages()

    assert not setup.is_installed("cpu")


@pytest.mark.parametrize(
    ("size_gb", "lock", "is_lacking"),
    [(None, "cpu", False), ("0", "cpu", False), ("2", "cpu", True), ("2", "light", False)],
)
def test_lmcache_is_installed_if_the_setting_asks_for_a_kv_tier(
    setup: Any,
    monkeypatch: pytest.MonkeyPatch,
    size_gb: str | None,
    lock: str,
    is_lacking: bool,
) -> None:
    if size_gb is not None:
        monkeypatch.setenv("CARET_KV_TIER_GB", size_gb)

    assert setup.lacks_kv_tier(lock) is is_lacking


def test_lmcache_is_installed_again_only_if_its_lock_changes(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARET_KV_TIER_GB", "1")
    commands: list[list[str]] = []
    monkeypatch.setattr(setup, "run_step", lambda _title, _next, command: commands.append(command))

    setup.install_kv_tier()
    lacked_after_installation = setup.lacks_kv_tier("cpu")
    setup.KV_TIER_LOCK.write_text("lmcache==2\n")

    assert commands[0][-2:] == ["-r", str(setup.KV_TIER_LOCK)]
    assert not lacked_after_installation
    assert setup.lacks_kv_tier("cpu")


def test_a_requirement_is_extracted_from_the_lock_with_its_hashes(setup: Any) -> None:
    assert setup.read_requirement("cpu", "torch") == "torch==1 \\\n    --hash=sha256:aa\n"


def test_a_full_disk_is_rejected_before_downloads(setup: Any) -> None:
    setup.NEEDED_MB["cpu"] = (2**40, 0)  # more than any disk has

    with pytest.raises(setup.Refusal, match="MB free") as exc_info:
        setup.check_disk("cpu")

    assert exc_info.value.code == 4


def test_a_disk_that_fills_during_installation_is_reported(setup: Any) -> None:
    refusal = setup.explain_failure(
        "3/4 packages", 1, "OSError: [Errno 28] No space left on device", log=setup.LOG
    )

    assert refusal.code == 4


def test_a_failure_names_its_reason_and_the_log(setup: Any) -> None:
    refusal = setup.explain_failure(
        "3/4 packages", 1, "x\nERROR: No matching distribution\n", log=setup.LOG
    )

    assert refusal.code == 6
    assert "No matching distribution" in str(refusal)
    assert str(setup.LOG) in str(refusal)


def test_an_unsuitable_python_is_rejected(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    monkeypatch.setenv("PATH", "")

    with pytest.raises(setup.Refusal, match=r"3\.11 or 3\.12") as exc_info:
        setup.ensure_suitable_python()

    assert exc_info.value.code == 2


def test_a_processor_without_avx2_is_rejected(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("setup_machine.has_avx2", lambda: False)

    with pytest.raises(setup.Refusal, match="AVX2") as exc_info:
        setup.check_machine("cpu")

    assert exc_info.value.code == 5


def test_an_unsupported_machine_is_rejected(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(setup.Refusal, match="riscv64") as exc_info:
        setup.check_machine("cpu")

    assert exc_info.value.code == 5


def test_the_setting_decides_which_engine_is_installed(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setup_machine.has_nvidia_driver", lambda: True)
    monkeypatch.setenv("CARET_ENGINE", "gpu")
    assert setup.choose_lock(wants_dev=False, wants_light=False) == "gpu"

    monkeypatch.setenv("CARET_ENGINE", "cpu")
    assert setup.choose_lock(wants_dev=True, wants_light=False) == "dev"

    monkeypatch.setenv("CARET_ENGINE", "quantum")
    with pytest.raises(setup.Refusal, match="CARET_ENGINE"):
        setup.choose_lock(wants_dev=False, wants_light=False)


def test_the_gpu_build_is_not_downloaded_without_a_gpu(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setup_machine.has_nvidia_driver", lambda: False)
    monkeypatch.setenv("CARET_ENGINE", "gpu")

    with pytest.raises(setup.Refusal, match="no NVIDIA driver") as exc_info:
        setup.choose_lock(wants_dev=False, wants_light=False)

    assert exc_info.value.code == 5


@pytest.mark.parametrize(
    ("installed", "wants_light", "expected"),
    [
        ("cpu", True, "dev"),
        ("light", False, "dev"),
        ("dev", True, "dev"),
        ("gpu", True, "gpu"),
        ("light", True, "light"),
    ],
)
def test_an_outdated_installation_is_never_made_smaller(
    setup: Any, monkeypatch: pytest.MonkeyPatch, installed: str, wants_light: bool, expected: str
) -> None:
    monkeypatch.setenv("CARET_ENGINE", "cpu")
    setup.write_stamp(installed)
    (setup.LOCKS / f"{installed}.txt").write_text("torch==2\n")

    assert setup.choose_lock(wants_dev=False, wants_light=wants_light) == expected


def test_the_light_environment_needs_no_engine(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE", "gpu")

    assert setup.choose_lock(wants_dev=False, wants_light=True) == "light"


def development_packages() -> set[str]:
    """Return the packages that pyproject.toml lists for development, without their versions."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return {
        re.split(r"[~=\[]", requirement)[0]
        for requirement in project["optional-dependencies"]["dev"]
    }


def test_the_light_lock_is_a_part_of_the_dev_lock_without_torch() -> None:
    locks = REPOSITORY / "platform" / "locks"
    light, dev = (
        {line.split()[0] for line in (locks / name).read_text().splitlines() if "==" in line}
        for name in ("light.txt", "dev.txt")
    )

    assert light < dev
    assert development_packages() <= {line.partition("==")[0] for line in light}
    assert not {line for line in light if line.startswith(("torch", "vllm", "transformers"))}


def test_a_silent_step_is_stopped(setup: Any) -> None:
    setup.MAX_SILENCE_S = 0.5
    setup.LOG.touch()

    with pytest.raises(setup.Refusal, match="wrote nothing") as exc_info:
        setup.run_step("3/4 packages", "next: Caret itself", ["sleep", "600"])

    assert exc_info.value.code == 6


def test_an_unreachable_package_index_is_reported(setup: Any) -> None:
    refusal = setup.explain_failure("2/4 uv", 1, "NewConnectionError: x\nERROR: y\n", log=setup.LOG)

    assert "cannot be reached" in str(refusal)


def test_a_log_folder_that_cannot_be_created_is_reported(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    setup.LOGS = tmp_path / "file" / "logs"
    monkeypatch.setattr(sys, "argv", ["setup", "--light"])
    setup.check_disk = lambda lock: None

    assert setup.main() == 6
    assert "Not a directory" in capsys.readouterr().err


def test_a_second_setup_waits_for_the_pip_of_a_killed_setup(setup: Any) -> None:
    with setup.hold_setup_lock():
        pip = subprocess.Popen(["sleep", "600"], close_fds=False)
    with pip:
        waiting = subprocess.Popen(["flock", "--nonblock", str(setup.LOGS / "setup.lock"), "true"])

        assert waiting.wait(timeout=5) == 1  # pip still holds the lock
        pip.kill()


def test_pip_checks_hashes(setup: Any) -> None:
    assert "--require-hashes" in setup.pip_command("-r", "lock.txt")


def test_uv_uses_the_package_index_of_pip(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configuration = tmp_path / "pip.conf"
    monkeypatch.setattr(setup, "PYTHON", sys.executable)  # has pip
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert "--default-index" not in setup.uv_command("-r", "lock.txt")

    configuration.write_text("[global]\nindex-url = https://packages.example/simple\n")
    assert "https://packages.example/simple" in setup.uv_command("-r", "lock.txt")

    monkeypatch.setenv("PIP_INDEX_URL", "https://other.example/simple")
    assert "https://other.example/simple" in setup.uv_command("-r", "lock.txt")


@pytest.mark.parametrize(("code", "tools"), [("FAILED", ["uv", "pip"]), ("NO_DISK_SPACE", ["uv"])])
def test_pip_installs_the_packages_if_uv_fails_for_other_reasons_than_a_full_disk(
    setup: Any, monkeypatch: pytest.MonkeyPatch, code: str, tools: list[str]
) -> None:
    used = []

    def run_step(title: str, _following: str, command: list[str], **_options: Any) -> None:
        if title != "3/4 uv":
            used.append("uv" if command[0].endswith("/uv") else "pip")
            if used == ["uv"]:
                raise setup.Refusal("uv failed", getattr(setup, code))

    monkeypatch.setattr(setup, "run_step", run_step)
    with contextlib.suppress(setup.Refusal):
        setup.install_with_uv("dev")

    assert used == tools
