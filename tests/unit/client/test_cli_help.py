"""`manage.py help`: the first overview for a user."""

from pathlib import Path

import pytest

from caret import cli
from caret.cli_help import GROUPS, render_overview

_REPOSITORY = Path(__file__).resolve().parents[3]
_HELP = {"help", "--help", "-h"}


def test_the_overview_lists_each_caret_command_once() -> None:
    paths = [
        path
        for folder in ("platform/caret", "tenants", "console", "inference")
        for path in (_REPOSITORY / folder).glob("**/management/commands/*.py")
    ]
    django_commands = {path.stem for path in paths if path.stem != "__init__"}
    our_commands = django_commands | (cli._COMMANDS.keys() - _HELP)

    listed_commands = [name for commands in GROUPS.values() for name in commands]

    assert sorted(listed_commands) == sorted(our_commands)


def test_the_overview_fits_into_80_columns() -> None:
    assert max(len(line) for line in render_overview().splitlines()) <= 80


@pytest.mark.parametrize(
    "argv", [[], ["help"], ["--help"], ["-h"], ["help", "help"], ["help", "--help"], ["-h", "-h"]]
)
def test_the_overview_needs_no_installation(
    argv: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARET_ROOT_SECRET", "nonsense")  # any use of the settings would fail

    assert cli.run(["manage.py", *argv]) == 0

    assert capsys.readouterr().out == render_overview()


def test_help_of_a_command_without_settings_is_its_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.run(["manage.py", "help", "capacity"])

    assert exit_.value.code == 0
    assert "usage: manage.py capacity" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["down", "gateway", "probe", "relay"])
@pytest.mark.parametrize("arguments", ["help COMMAND", "COMMAND --help", "COMMAND -h"])
def test_help_of_a_command_without_arguments_does_not_run_it(
    command: str,
    arguments: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_argv: list[str]) -> int:
        pytest.fail(f"{command} was started")

    monkeypatch.setitem(cli._COMMANDS, command, fail)

    assert cli.run(["manage.py", *arguments.replace("COMMAND", command).split()]) == 0

    assert f"usage: manage.py {command}" in capsys.readouterr().out
