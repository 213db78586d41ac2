"""A file of a page says what the page says beside its rows, and where it is cut."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from caret.local.paths import REPOSITORY

CONSOLE: Final = REPOSITORY / "console"
WRITER: Final = "csv_response"


def calls_of(code: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == WRITER:
            yield node


def without_notes(code: str) -> list[int]:
    """The lines of files that say nothing."""
    return [
        call.lineno
        for call in calls_of(code)
        if not any(each.arg == "notes" and not is_nothing(each.value) for each in call.keywords)
    ]


def is_nothing(notes: ast.expr) -> bool:
    return isinstance(notes, ast.List | ast.Tuple) and not notes.elts


def writers() -> list[Path]:
    return sorted(path for path in CONSOLE.rglob("*.py") if any(calls_of(path.read_text())))


@pytest.mark.parametrize("path", writers(), ids=lambda path: str(path.relative_to(CONSOLE)))
def test_a_file_has_notes(path: Path) -> None:
    assert without_notes(path.read_text()) == []


def test_files_are_written_in_one_place() -> None:
    """So that the walk above misses none."""
    places = [path for path in CONSOLE.rglob("*.py") if '"text/csv' in path.read_text()]

    assert places == [CONSOLE / "layout" / "lists" / "csv_response.py"]


def test_it_finds_files_without_notes() -> None:
    code = (
        "csv_response('a', h, rows)\n"
        "csv_response('b', h, rows, notes=[])\n"
        "csv_response.csv_response('c', h, rows, notes=())\n"
        "csv_response('d', h, rows, notes=notes_of(found))\n"
        "csv_response('e', h, rows, notes=[] if all_of_it else [said])\n"
    )

    assert without_notes(code) == [1, 2, 3]
