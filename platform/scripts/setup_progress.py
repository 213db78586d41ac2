"""The progress of `platform/scripts/setup` on the terminal, and the reason why a step failed.

Standard library only, like the script itself.
"""

from __future__ import annotations

import re
import shutil
import signal
import sys
from pathlib import Path

from setup_machine import FAILED, NO_DISK_SPACE, Refusal

REMINDER_S = 15.0  # between two lines about a step if the output is not a terminal
# A step without output for this long is killed. Pip is silent during a download, and the largest
# wheel (800 MB) takes 800 s at 1 MB/s.
MAX_SILENCE_S = 900.0
_CLEAR_LINE = "\r\033[K"  # moves to the start of the terminal's line, and clears the line
# Messages of pip and uv if the package index cannot be reached.
UNREACHABLE = re.compile(
    r"Failed to establish a new connection|NewConnectionError|ConnectTimeout|Read timed out"
    r"|NameResolutionError|dns error|error sending request"
)


class ProgressLine:
    """The progress of one step: one changing line on a terminal, or a new line each REMINDER_S.

    Times are seconds since the start of the step.
    """

    def __init__(self, title: str, following: str) -> None:
        """`title` names the step, and `following` tells which step comes next."""
        self.title, self.following = title, following
        self.is_terminal = sys.stdout.isatty()
        self.next_reminder_s = 0.0  # time of the next line if the output is not a terminal

    def show(self, status: str, elapsed_s: float) -> None:
        line = f"  ... {self.title:<18} {status:<44} {elapsed_s:5.0f} s  {self.following}"
        if self.is_terminal:
            columns = shutil.get_terminal_size().columns
            print(f"{_CLEAR_LINE}{line[: columns - 1]}", end="", flush=True)
        elif elapsed_s >= self.next_reminder_s:
            self.next_reminder_s = elapsed_s + REMINDER_S
            print(line.rstrip(), flush=True)

    def end(self, elapsed_s: float, *, ok: bool) -> None:
        """Print the last line of the step."""
        start = _CLEAR_LINE if self.is_terminal else ""
        sign = "ok " if ok else "-- "
        print(f"{start}  {sign} {self.title:<18} {'':<44} {elapsed_s:5.0f} s", flush=True)


def explain_failure(title: str, status: int, output: str, *, log: Path) -> Refusal:
    """Return the reason why a step failed, based on its exit status and output.

    The status is negative if a signal ended the step. `log` is the file with the whole output.
    """
    if "No space left on device" in output:
        return Refusal(
            f"The disk is full: {title} failed. Free some space, and run it again.", NO_DISK_SPACE
        )
    if UNREACHABLE.search(output):
        return Refusal(
            f"The installation failed at {title}: the package index cannot be reached. Check the"
            f" network, or name a folder of wheels: PIP_FIND_LINKS=FOLDER. Log: {log}",
            FAILED,
            output=output,
        )
    if status == -signal.SIGKILL:
        return Refusal(
            f"The installation stopped at {title}: it was killed, or wrote nothing for"
            f" {MAX_SILENCE_S / 60:.0f} minutes. Run it again to continue. Log: {log}",
            FAILED,
            output=output,
        )
    reasons = re.findall(r"^error: (.*)$", output, re.MULTILINE | re.IGNORECASE)
    reason = f" Reason: {reasons[0]}." if reasons else ""
    # uv runs the steps whose titles contain "by uv".
    hint = " To use wheels from a folder, set PIP_FIND_LINKS=FOLDER." if "by uv" in title else ""
    return Refusal(
        f"The installation failed at {title} (exit status {status}).{reason}{hint}"
        f" Run it again to continue. Log: {log}",
        FAILED,
        output=output,
    )
