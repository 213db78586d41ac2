"""A smoke test: the real client streams one completion of an example file."""

import subprocess
from collections.abc import Callable, Mapping

from caret.local.caret_services import manage
from caret.local.paths import REPOSITORY

EXAMPLE = REPOSITORY / "platform" / "examples" / "readings.py"
# The cursor is after the first occurrence of this text.
BEFORE_CURSOR = "with open(self.path, "
_TIMEOUT_S = 60.0


def find_spot(text: str, *, before_cursor: str) -> tuple[int, int]:
    """Return line and column of the cursor, both from 1."""
    before = text[: text.index(before_cursor) + len(before_cursor)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def stream_smoke_test(*, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Print a completion. A failure is printed and never raised: the installation keeps running."""
    line, column = find_spot(EXAMPLE.read_text(), before_cursor=BEFORE_CURSOR)
    name = str(EXAMPLE.relative_to(REPOSITORY))
    say(f"  A completion of {name}, line {line}, column {column}:")
    say("")
    command = manage("complete", name, "--line", str(line), "--column", str(column))
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            cwd=REPOSITORY,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        say(f"  The completion was not finished after {_TIMEOUT_S:.0f} s.")
        return
    if finished.returncode != 0:
        say(f"  The completion failed with status {finished.returncode}.")
    say("")
