"""Progress in the terminal: the current step, its duration and the next step.

There are two forms: lines for a log or a pipe, and a live line for a terminal.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_REMINDER_S = 10.0  # a log or pipe gets a line this often while a step is running
_TITLE_WIDTH = 12
_DESCRIPTION_WIDTH = 50  # of the longest description


class StartProgress(Protocol):
    @contextmanager
    def show_step(self, title: str, description: str) -> Iterator[Callable[[], None]]:
        """Show a step; yield a function to call often while waiting."""

    def print_line(self, text: str = "") -> None: ...


class StepList:
    """The titles of all steps in order, to name the next step."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._titles = list(titles)

    def next_after(self, title: str) -> str:
        """Return the title of the next step; "done" after the last or an unknown step."""
        later_titles = (
            self._titles[self._titles.index(title) + 1 :] if title in self._titles else []
        )
        return later_titles[0] if later_titles else "done"


def _write_at_once(text: str) -> None:
    """Write and flush, so that the readers of a log or a pipe need not wait."""
    sys.stdout.write(text)
    sys.stdout.flush()


class PlainProgress:
    """Lines for a log or a pipe."""

    def __init__(
        self,
        plan: StepList,
        *,
        write: Callable[[str], object] = _write_at_once,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._write = write
        self._now_s = now_s

    @contextmanager
    def show_step(self, title: str, description: str) -> Iterator[Callable[[], None]]:
        began_s = reminded_s = self._now_s()
        self.print_line(f"  ... {title}: {description} (next: {self._plan.next_after(title)})")

        def tick() -> None:
            nonlocal reminded_s
            if self._now_s() - reminded_s >= _REMINDER_S:
                reminded_s = self._now_s()
                self.print_line(f"  ... {title}: still running after {reminded_s - began_s:.0f} s")

        yield tick
        self.print_line(f"  ok  {title}: {self._now_s() - began_s:.1f} s")

    def print_line(self, text: str = "") -> None:
        self._write(text + "\n")


class TerminalProgress:
    """A live line for a terminal.

    It is redrawn only by the function that `show_step` yields. A thread that redraws it would make
    forks of the supervisor unsafe.
    """

    def __init__(self, plan: StepList, *, console: Console) -> None:
        self._plan = plan
        self._console = console

    @contextmanager
    def show_step(self, title: str, description: str) -> Iterator[Callable[[], None]]:
        began_s = time.monotonic()
        spinner = Spinner("dots", style="cyan")

        def build_moving_line() -> Table:
            note = Text(f"next: {self._plan.next_after(title)}", style="dim")
            return _build_line(spinner, title, description, time.monotonic() - began_s, note=note)

        with Live(
            build_moving_line(), console=self._console, auto_refresh=False, transient=True
        ) as live:
            yield lambda: live.update(build_moving_line(), refresh=True)
        check_mark = Text("✓", style="green")
        self._console.print(_build_line(check_mark, title, description, time.monotonic() - began_s))

    def print_line(self, text: str = "") -> None:
        self._console.print(text, highlight=False, markup=False)


def _build_line(
    sign: Spinner | Text,
    title: str,
    description: str,
    elapsed_s: float,
    *,
    note: Text | None = None,
) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=3, justify="right")
    table.add_column(width=_TITLE_WIDTH, style="bold")
    table.add_column(width=_DESCRIPTION_WIDTH, overflow="ellipsis", no_wrap=True)
    table.add_column(width=7, justify="right", style="cyan")
    table.add_column(no_wrap=True)
    table.add_row(sign, title, description, f"{elapsed_s:.1f} s", note or Text(""))
    return table


def choose_progress(plan: StepList) -> StartProgress:
    console = Console()
    if console.is_terminal and not console.is_dumb_terminal:
        return TerminalProgress(plan, console=console)
    return PlainProgress(plan)
