"""Translation catalogues are complete and compiled, and messages of errors can be translated."""

import ast
import subprocess
import sys
from typing import Final

from caret.local.paths import REPOSITORY

_ERROR_CLASSES: Final = frozenset(
    {"Conflict", "Forbidden", "InvalidValue", "LimitReached", "NotFound", "Unauthenticated"}
)


def test_the_catalogues_are_complete_and_compiled() -> None:
    script = REPOSITORY / "platform" / "scripts" / "messages"

    result = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, f"Run platform/scripts/messages.\n{result.stdout}{result.stderr}"


def test_messages_of_errors_are_no_f_strings() -> None:
    """Values are passed separately, so that the message can be translated."""
    paths = sorted((REPOSITORY / "tenants").rglob("*.py"))

    lines_by_path = {
        str(path): lines for path in paths if (lines := _formatted_messages(path.read_text()))
    }

    assert lines_by_path == {}


def test_the_check_finds_f_strings() -> None:
    code = (
        "NotFound('No such key.')\n"
        "NotFound(f'No key {name}.')\n"
        "InvalidValue('name', f'{name} is too long.')\n"
        "InvalidValue(f'models.{index}', 'Too long.')\n"
    )

    assert _formatted_messages(code) == [2, 3]


def _formatted_messages(code: str) -> list[int]:
    """Return the line numbers of errors whose message is an f-string."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _ERROR_CLASSES
        # The message is the last positional argument, after a field's name or an error code.
        and any(isinstance(message, ast.JoinedStr) for message in node.args[-1:])
    ]
