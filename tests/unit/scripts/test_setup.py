"""`platform/scripts/setup`, which has no .py suffix and imports no package of ours."""

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
    for name in ("light", "cpu", "dev", "gpu"):
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
        "LANGUAGE_SERVER": language_server,
        "LOGS": logs,
        "LOG": logs / "setup.log",
    }.items():
        setattr(module, name, value)
    return module


def test_without_a_stamp_nothing_is_installed(setup: Any) -> None:
    assert not setup.is_installed("cpu")


def test_with_its_stamp_it_is_installed(setup: Any) -> None:
    setup.write_stamp("cpu")

    assert setup.is_installed("cpu")


@pytest.mark.parametrize(
    ("have", "want", "is_enough"),
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
def test_a_larger_installation_serves_who_asks_for_less(
    setup: Any, have: str, want: str, is_enough: bool
) -> None:
    setup.write_stamp(have)

    assert setup.is_installed(want) is is_enough


def test_a_changed_lock_is_installed_again(setup: Any) -> None:
    setup.write_stamp("cpu")

    (setup.LOCKS / "cpu.txt").write_text("torch==2\n")

    assert not setup.is_installed("cpu")


def test_a_changed_language_server_is_installed_again(setup: Any) -> None:
    setup.write_stamp("dev")

    (setup.LANGUAGE_SERVER / "pyproject.toml").write_text("[project]\n")

    assert not setup.is_installed("dev")


@pytest.mark.parametrize(("lock", "is_there"), [("cpu", False), ("dev", True), ("gpu", True)])
def test_the_language_server_is_for_those_who_develop_it(
    setup: Any, lock: str, is_there: bool
) -> None:
    assert (str(setup.LANGUAGE_SERVER) in setup.editables(lock)) is is_there


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"lock": "other"}'])
def test_a_broken_stamp_counts_for_nothing(setup: Any, text: str) -> None:
    setup.STAMP.write_text(text)

    assert not setup.is_installed("cpu")


def test_an_environment_whose_python_is_gone_is_made_again(setup: Any) -> None:
    setup.write_stamp("cpu")
    setup.PYTHON.unlink()
    setup.PYTHON.symlink_to("/no/such/python")

    assert not setup.is_installed("cpu")
    assert not setup.has_working_pip()


def test_a_half_unpacked_package_is_unpacked_again(setup: Any) -> None:
    site = setup.VENV / "lib" / "python3.11" / "site-packages"
    for name, record in {"whole": "a.py,,\nINSTALLER,sha256=x,4\n", "half": "a.py,,\n"}.items():
        (site / f"{name}-1.dist-info").mkdir(parents=True)
        (site / f"{name}-1.dist-info" / "RECORD").write_text(record)
    (site / "less-1.dist-info").mkdir()

    setup.remove_half_installed()

    assert [folder.name for folder in site.iterdir()] == ["whole-1.dist-info"]


def test_an_installation_that_begins_takes_the_stamp_away(setup: Any) -> None:
    setup.write_stamp("cpu")

    setup.remove_half_installed()

    assert not setup.is_installed("cpu")


def test_one_package_is_cut_out_of_the_lock_with_its_hashes(setup: Any) -> None:
    assert setup.requirement("cpu", "torch") == "torch==1 \\\n    --hash=sha256:aa\n"


def test_a_full_disk_is_refused_before_anything_is_fetched(setup: Any) -> None:
    setup.NEEDED_MB["cpu"] = (2**40, 0)

    with pytest.raises(setup.Refusal, match="MB free") as caught:
        setup.check_disk("cpu")

    assert caught.value.code == 4


def test_a_disk_that_fills_while_it_installs_is_named(setup: Any) -> None:
    refusal = setup.explain(
        "3/4 packages", 1, "OSError: [Errno 28] No space left on device", log=setup.LOG
    )

    assert refusal.code == 4


def test_a_failure_says_the_reason_and_where_the_rest_is(setup: Any) -> None:
    refusal = setup.explain(
        "3/4 packages", 1, "x\nERROR: No matching distribution\n", log=setup.LOG
    )

    assert refusal.code == 6
    assert "No matching distribution" in str(refusal)
    assert str(setup.LOG) in str(refusal)


def test_an_unsuitable_python_is_named(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    monkeypatch.setenv("PATH", "")

    with pytest.raises(setup.Refusal, match=r"3\.11 or 3\.12") as caught:
        setup.find_suitable_python()

    assert caught.value.code == 2


def test_a_processor_without_avx2_is_named(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("setup_machine.has_avx2", lambda: False)

    with pytest.raises(setup.Refusal, match="AVX2") as caught:
        setup.check_machine("cpu")

    assert caught.value.code == 5


def test_another_machine_is_named(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(setup.Refusal, match="riscv64") as caught:
        setup.check_machine("cpu")

    assert caught.value.code == 5


def test_the_engine_can_be_chosen(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE", "gpu")
    assert setup.choose_lock(wants_dev=False, wants_light=False) == "gpu"

    monkeypatch.setenv("CARET_ENGINE", "cpu")
    assert setup.choose_lock(wants_dev=True, wants_light=False) == "dev"

    monkeypatch.setenv("CARET_ENGINE", "quantum")
    with pytest.raises(setup.Refusal, match="CARET_ENGINE"):
        setup.choose_lock(wants_dev=False, wants_light=False)


@pytest.mark.parametrize(
    ("have", "wants_light", "chosen"),
    [
        ("cpu", True, "dev"),
        ("light", False, "dev"),
        ("dev", True, "dev"),
        ("gpu", True, "gpu"),
        ("light", True, "light"),
    ],
)
def test_no_outdated_installation_is_made_smaller(
    setup: Any, monkeypatch: pytest.MonkeyPatch, have: str, wants_light: bool, chosen: str
) -> None:
    monkeypatch.setenv("CARET_ENGINE", "cpu")
    setup.write_stamp(have)
    (setup.LOCKS / f"{have}.txt").write_text("torch==2\n")

    assert setup.choose_lock(wants_dev=False, wants_light=wants_light) == chosen


def test_the_light_environment_needs_no_engine(setup: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_ENGINE", "gpu")

    assert setup.choose_lock(wants_dev=False, wants_light=True) == "light"


def development_packages() -> set[str]:
    """Return the packages that pyproject.toml lists for development, without their versions."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return {re.split(r"[~=\[]", each)[0] for each in project["optional-dependencies"]["dev"]}


def test_the_light_lock_has_the_versions_of_the_full_one_without_torch() -> None:
    locks = REPOSITORY / "platform" / "locks"
    light, dev = (
        {line.split()[0] for line in (locks / name).read_text().splitlines() if "==" in line}
        for name in ("light.txt", "dev.txt")
    )

    assert light < dev
    assert development_packages() <= {line.partition("==")[0] for line in light}
    assert not {line for line in light if line.startswith(("torch", "vllm", "transformers"))}


def test_a_step_that_writes_nothing_is_ended(setup: Any) -> None:
    setup.MAX_SILENCE_S = 0.5
    setup.LOG.touch()

    with pytest.raises(setup.Refusal, match="wrote nothing") as caught:
        setup.step("3/4 packages", "next: Caret itself", ["sleep", "600"])

    assert caught.value.code == 6


def test_an_index_that_cannot_be_reached_is_named(setup: Any) -> None:
    refusal = setup.explain("2/4 uv", 1, "NewConnectionError: x\nERROR: y\n", log=setup.LOG)

    assert "cannot be reached" in str(refusal)


def test_a_folder_that_cannot_be_written_is_named(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    setup.LOGS = tmp_path / "file" / "logs"
    monkeypatch.setattr(sys, "argv", ["setup", "--light"])
    setup.check_disk = lambda lock: None

    assert setup.main() == 6
    assert "Not a directory" in capsys.readouterr().err


def test_a_second_setup_waits_even_for_the_pip_of_a_killed_one(setup: Any) -> None:
    with setup.only_one_setup():
        pip = subprocess.Popen(["sleep", "600"], close_fds=False)
    with pip:
        waiting = subprocess.Popen(["flock", "--nonblock", str(setup.LOGS / "setup.lock"), "true"])

        assert waiting.wait(timeout=5) == 1
        pip.kill()


def test_pip_must_check_hashes(setup: Any) -> None:
    assert "--require-hashes" in setup.pip("-r", "lock.txt")
