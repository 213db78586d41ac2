"""Splits a file at the cursor."""

from dataclasses import dataclass


class CursorOutOfRange(Exception):
    """The cursor is outside of the file. The text names the valid range."""


@dataclass(frozen=True, slots=True)
class CursorSplit:
    prefix: str
    suffix: str


def cut_at(text: str, *, line: int, column: int) -> CursorSplit:
    """Split a text at a line and column, both from 1.

    Column 1 is before a line's first character; the column after its last character is valid, too.
    Raises CursorOutOfRange.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        raise CursorOutOfRange(f"There is no line {line}: the file has {len(lines)}.")
    at = lines[line - 1]
    if not 1 <= column <= len(at) + 1:
        raise CursorOutOfRange(f"There is no column {column}: line {line} ends at {len(at) + 1}.")
    before, after = lines[: line - 1], lines[line:]
    return CursorSplit(
        prefix="\n".join([*before, at[: column - 1]]),
        suffix="\n".join([at[column - 1 :], *after]),
    )
