"""`platform/scripts/setup_machine.py`: the choice of the Python for `.venv`."""

import importlib
import sys

import pytest

from caret.local.paths import REPOSITORY


@pytest.mark.parametrize(
    ("options", "has_other", "is_other_used"),
    [("", True, True), ("", False, False), ("'--enable-optimizations'", True, False)],
)
def test_a_python_without_optimizations_is_replaced_by_the_distributions(
    monkeypatch: pytest.MonkeyPatch, options: str, has_other: bool, is_other_used: bool
) -> None:
    def run(command: list[str], **_options: object) -> None:
        if not has_other:
            raise FileNotFoundError(command[0])

    monkeypatch.syspath_prepend(REPOSITORY / "platform" / "scripts")
    setup_machine = importlib.import_module("setup_machine")
    monkeypatch.setattr("sysconfig.get_config_var", {"CONFIG_ARGS": options}.get)
    monkeypatch.setattr(sys, "base_prefix", "/opt/python")
    monkeypatch.setattr("subprocess.run", run)

    interpreter = setup_machine.choose_interpreter()

    assert interpreter.startswith("/usr/bin/python3.") == is_other_used
    assert is_other_used or interpreter == sys.executable
