"""One completion of an example file, streamed into the terminal by the real client."""

import subprocess
from collections.abc import Callable, Mapping

from caret.local.caret_services import manage
from caret.local.paths import REPOSITORY

EXAMPLE = REPOSITORY / "platform" / "examples" / "readings.py"
# The cursor stands behind the first of this text.
BEFORE_CURSOR = "with open(self.path, "
_TIMEOUT_S = 60.0


def find_spot(text: str, *, before_cursor: str) -> tuple[int, int]:
    """Line and column, both from 1."""
    before = text[: text.index(before_cursor) + len(before_cursor)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def stream_smoke_test(*, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Never raises for a completion that fails: what runs, runs on, and the sentence says why."""
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
