"""Prints responses for people: lists as tables, single objects field by field."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_response(console: Console, response: Any) -> None:
    """Print a decoded JSON response: first its lists of objects, then all other fields."""
    if not isinstance(response, Mapping):
        console.print_json(data=response)
        return
    other_fields = {
        name: value for name, value in response.items() if not _is_list_of_objects(value)
    }
    for name, value in response.items():
        if _is_list_of_objects(value):
            console.print(_build_table(name, value))
    if other_fields:
        console.print(_build_field_table(other_fields))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


def _build_table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        title=f"{_split_words(name)}: {len(rows)}", title_justify="left", box=None, pad_edge=False
    )
    names = list(dict.fromkeys(name for row in rows for name in row))
    for column in names:
        is_number = all(isinstance(row.get(column), int | float | None) for row in rows)
        table.add_column(
            _split_words(column), justify="right" if is_number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(_format_cell(row.get(column)) for column in names))
    return table


def _build_field_table(values: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(_split_words(name), _format_cell(value))
    return table


def _format_cell(value: Any) -> Text:
    """Return a value as Text, which rich does not interpret as markup."""
    match value:
        case None:
            return Text("-", style="dim")
        case bool():
            return Text("yes" if value else "no")
        case list() if all(isinstance(item, str) for item in value):
            return _make_text(", ".join(value))
        case Mapping():
            return Text("\n").join(_format_entry(str(name), entry) for name, entry in value.items())
        case _:
            return _make_text(str(value))


def _format_entry(name: str, value: Any) -> Text:
    return Text(f"{_split_words(name)}: ") + _format_cell(value)


def _make_text(value: str) -> Text:
    """Escape control characters, because texts from users must not control the terminal.

    `ascii` returns an escape sequence between quotes, which are removed.
    """
    return Text("".join(char if char.isprintable() else ascii(char)[1:-1] for char in value))


def _split_words(name: str) -> str:
    return _make_text(name.replace("_", " ")).plain
