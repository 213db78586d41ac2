"""What the console says is in its catalogues, and these are compiled."""

import ast
import subprocess
import sys
from typing import Final

from caret.local.paths import REPOSITORY

_REFUSALS: Final = frozenset(
    {"Conflict", "Forbidden", "InvalidValue", "LimitReached", "NotFound", "Unauthenticated"}
)


def test_the_catalogues_hold_what_is_said_and_are_compiled() -> None:
    script = REPOSITORY / "platform" / "scripts" / "messages"

    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, f"Run platform/scripts/messages.\n{done.stdout}{done.stderr}"


def test_what_is_refused_has_a_wording_for_the_catalogues() -> None:
    """Not one that is put together where it is raised: values are handed over beside it."""
    paths = sorted((REPOSITORY / "tenants").rglob("*.py"))

    made = {str(path): lines for path in paths if (lines := _made_wordings(path.read_text()))}

    assert made == {}


def _made_wordings(code: str) -> list[int]:
    """The lines of refusals whose last text is an f-string."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _REFUSALS
        and any(isinstance(part, ast.JoinedStr) for part in node.args[-1:])
    ]
