"""Each CSV file of the console contains notes.

Notes are lines after the rows: the figures that the page shows beside its table, and a message if
rows were left out.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from caret.local.paths import REPOSITORY

CONSOLE: Final = REPOSITORY / "console"
WRITER: Final = "csv_response"


def writer_calls(code: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == WRITER:
            yield node


def lines_without_notes(code: str) -> list[int]:
    """Return the line numbers of calls that pass no notes."""
    return [
        call.lineno
        for call in writer_calls(code)
        if not any(
            keyword.arg == "notes" and not is_empty(keyword.value) for keyword in call.keywords
        )
    ]


def is_empty(notes: ast.expr) -> bool:
    return isinstance(notes, ast.List | ast.Tuple) and not notes.elts


def files_with_writers() -> list[Path]:
    return sorted(path for path in CONSOLE.rglob("*.py") if any(writer_calls(path.read_text())))


@pytest.mark.parametrize(
    "path", files_with_writers(), ids=lambda path: str(path.relative_to(CONSOLE))
)
def test_every_csv_file_has_notes(path: Path) -> None:
    assert lines_without_notes(path.read_text()) == []


def test_only_the_csv_response_module_writes_csv() -> None:
    """`test_every_csv_file_has_notes` checks only calls of this module."""
    paths = [path for path in CONSOLE.rglob("*.py") if '"text/csv' in path.read_text()]

    assert paths == [CONSOLE / "layout" / "lists" / "csv_response.py"]
    assert files_with_writers() != []  # so that the other test has cases


def test_the_check_finds_files_without_notes() -> None:
    code = (
        "csv_response('a', h, rows)\n"
        "csv_response('b', h, rows, notes=[])\n"
        "csv_response.csv_response('c', h, rows, notes=())\n"
        "csv_response('d', h, rows, notes=notes_of(rows))\n"
        "csv_response('e', h, rows, notes=[] if is_complete else [note])\n"
    )

    assert lines_without_notes(code) == [1, 2, 3]
