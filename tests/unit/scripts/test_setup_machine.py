"""`platform/scripts/setup_machine.py`: the choice of the Python for `.venv`."""

import importlib
import sys

import pytest

from caret.local.paths import REPOSITORY


@pytest.mark.parametrize(
    ("build_options", "has_other_python", "is_other_used"),
    [("", True, True), ("", False, False), ("'--enable-optimizations'", True, False)],
)
def test_a_python_without_optimizations_is_replaced_by_that_of_the_distribution(
    monkeypatch: pytest.MonkeyPatch, build_options: str, has_other_python: bool, is_other_used: bool
) -> None:
    def run_other_python(command: list[str], **_options: object) -> None:
        if not has_other_python:
            raise FileNotFoundError(command[0])

    monkeypatch.syspath_prepend(REPOSITORY / "platform" / "scripts")
    setup_machine = importlib.import_module("setup_machine")
    monkeypatch.setattr("sysconfig.get_config_var", {"CONFIG_ARGS": build_options}.get)
    monkeypatch.setattr(sys, "base_prefix", "/opt/python")  # not the distribution's Python
    monkeypatch.setattr("subprocess.run", run_other_python)

    interpreter = setup_machine.choose_interpreter()

    if is_other_used:
        assert interpreter.startswith("/usr/bin/python3.")
    else:
        assert interpreter == sys.executable
