"""Finds the symbols of a line, and shortens the definition of a symbol. Pure, without a parser."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from caret_ls.text_document import split_lines, utf16_length

MAX_EXCERPT_LINES: Final = 10
MAX_EXCERPT_CHARS: Final = 400
MAX_SYMBOLS: Final = 4  # of a line: the last ones, near the cursor
_MIN_NAME_CHARS: Final = 3  # shorter names are rarely worth a lookup
# A name, or several names with dots between them.
_DOTTED_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NAME: Final = re.compile(r"\w+")
# The first line of a type. The excerpt of a type lists its members.
_TYPE: Final = re.compile(
    r"^\s*(?:\w+\s+)*(?:class|struct|interface|enum|trait|protocol|record|object|type)\b"
)
# The first line of a constant with several lines. Its entries are listed like a type's members.
_LITERAL: Final = re.compile(r"=\s*[\[{(]\s*$")
_OPENED: Final = re.compile(r"(?:[:{]|=>|\bdo|\bthen)\s*$")  # the end of a signature
_CLOSERS: Final = (")", "]", "}")
# The beginning of a docstring, which may have a prefix: r""" or u""".
_DOCSTRING: Final = re.compile(r"""[rRuU]?(?:\"{3}|'{3})""")
# A line of a type that begins with one of these is no member.
_NON_MEMBERS: Final = ("#", "//", "/*", "*", "--", *_CLOSERS)
# A line with only this bracket opens a body, usually in C#. It is no member, either.
_OPENER: Final = "{"
_MAX_READ_LINES: Final = 80  # of a definition; members further below are not found


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str  # with the names before it: `total` in `order.total` is the symbol `order.total`
    units: int  # start of the last name: UTF-16 code units from the start of the line


def find_symbols(line_before: str) -> list[Symbol]:
    """Return the last symbols before the cursor.

    A name that ends at the cursor is left out, because it is still being typed.
    """
    # `order.total` gives the symbols `order` and `order.total`.
    symbols = [
        Symbol(line_before[dotted.start() : name.end()], utf16_length(line_before[: name.start()]))
        for dotted in _DOTTED_NAME.finditer(line_before)
        for name in _NAME.finditer(line_before, dotted.start(), dotted.end())
        if name.end() < len(line_before) and len(name.group()) >= _MIN_NAME_CHARS
    ]
    return symbols[-MAX_SYMBOLS:]


def excerpt_at(text: str, line: int) -> str:
    """Return the definition that begins in the line, which counts from 0; "" if there is none.

    It is a signature without a body, or the first line of a type or constant and the first line of
    each member, without comments and blank lines.
    """
    lines = [
        line_text.rstrip() for line_text in split_lines(text)[max(line, 0) :][:_MAX_READ_LINES]
    ]
    if not lines or not lines[0].strip():
        return ""
    indent = _indent_of(lines[0])
    has_members = bool(_TYPE.match(lines[0]) or _LITERAL.search(lines[0]))
    selected = _select_members(lines, indent) if has_members else _select_signature(lines, indent)
    excerpt_lines: list[str] = []
    for selected_line in islice(selected, MAX_EXCERPT_LINES):
        excerpt_lines.append(selected_line[indent:])
        if sum(map(len, excerpt_lines)) > MAX_EXCERPT_CHARS:
            excerpt_lines.pop()
            break
    return "\n".join([*excerpt_lines, ""]) if excerpt_lines else ""


def _select_signature(lines: list[str], indent: int) -> Iterator[str]:
    """Yield the lines up to the one that opens the body, or up to the end of the definition."""
    for number, line in enumerate(lines):
        if number and _is_beyond(line, indent):
            return
        yield line
        if _OPENED.search(line):
            return


def _select_members(lines: list[str], indent: int) -> Iterator[str]:
    """Yield the first line of a type, and those of its members."""
    yield lines[0]
    member_indent, is_docstring = None, False
    for line in lines[1:]:
        text = line.strip()
        if not text or (text == _OPENER and _indent_of(line) == indent):
            continue
        if _is_beyond(line, indent):
            return
        member_indent = _indent_of(line) if member_indent is None else member_indent
        if is_docstring or _DOCSTRING.match(text):
            # A line with both marks is a whole docstring; a line with one begins or ends it.
            is_docstring = is_docstring ^ (text.count('"""') + text.count("'''") == 1)
        elif _indent_of(line) <= member_indent and _is_member(text):
            yield line


def _is_member(text: str) -> bool:
    return text != _OPENER and not text.startswith(_NON_MEMBERS)


def _is_beyond(line: str, indent: int) -> bool:
    """Return whether the line is after the definition: blank, or not deeper than its first line.

    A closing bracket still belongs to the definition.
    """
    if not line.strip():
        return True
    return _indent_of(line) <= indent and not line.lstrip().startswith(_CLOSERS)


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())
