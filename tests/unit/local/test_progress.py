"""Progress of `make up` in a terminal and in plain output."""

import io
import sys

import pytest
from rich.console import Console

from caret.local.progress import PlainProgress, StepList, TerminalProgress


class SteppingClock:
    """A clock that advances by `step_s` seconds at each reading."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += self._step_s
        return self._now_s


def test_the_list_gives_the_next_step() -> None:
    steps = StepList(["Postgres", "Valkey"])

    assert steps.next_after("Postgres") == "Valkey"
    assert steps.next_after("Valkey") == "done"
    assert steps.next_after("something else") == "done"


def test_plain_output_shows_the_step_the_next_one_and_the_time() -> None:
    lines: list[str] = []
    progress = PlainProgress(
        StepList(["Postgres", "Valkey"]), write=lines.append, now_s=SteppingClock(1.5)
    )

    with progress.show_step("Postgres", "the database"):
        pass

    assert lines == ["  ... Postgres: the database (next: Valkey)\n", "  ok  Postgres: 1.5 s\n"]


def test_plain_output_shows_that_a_long_step_continues() -> None:
    lines: list[str] = []
    progress = PlainProgress(StepList(["Engine"]), write=lines.append, now_s=SteppingClock(6.0))

    with progress.show_step("Engine", "loads") as tick:
        tick()
        tick()

    # The step began at 6 s. The second tick reads the clock twice, and reports at 24 s.
    assert [line for line in lines if "still running" in line] == [
        "  ... Engine: still running after 18 s\n"
    ]


def test_a_failed_step_is_not_reported_as_done() -> None:
    lines: list[str] = []
    progress = PlainProgress(StepList(["Engine"]), write=lines.append)

    with pytest.raises(RuntimeError), progress.show_step("Engine", "loads"):
        raise RuntimeError

    assert not [line for line in lines if "ok" in line]


def test_plain_output_reaches_a_log_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(log))  # buffers, as for a file or a pipe

    PlainProgress(StepList([])).print_line("Gateway is ready again.")

    assert log.getvalue() == b"Gateway is ready again.\n"


def test_a_terminal_shows_one_line_for_each_finished_step() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None)
    progress = TerminalProgress(StepList(["Postgres", "Valkey"]), console=console)

    with progress.show_step("Postgres", "the database") as tick:
        tick()

    assert "next: Valkey" in screen.getvalue()
    last_line = screen.getvalue().splitlines()[-1]
    assert "✓ Postgres" in last_line
    assert "next" not in last_line
