"""Counts the brackets of a file that have no partner, with a completion at the cursor.

No grammar is needed. A closing bracket that is the first text of its line closes only brackets of
lines that are not indented more. So the brace at the end of a class does not close its method.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from inference.context.prompt.cursor_text import line_after, line_before

# Text further away is left out: its brackets hardly matter, and it would take longer to read.
_NEARBY_CHARS: Final = 4_000
CLOSERS: Final = ")]}"
_PARTNERS: Final = {")": "(", "]": "[", "}": "{"}
_STRING: Final = re.compile(r"""\"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""")
_BRACKET: Final = re.compile(r"[()\[\]{}]")
_PAIR: Final = re.compile(
    r"\([^()\[\]{}\n]*+\)|\[[^()\[\]{}\n]*+\]|\{[^()\[\]{}\n]*+\}"  # within one line
)
_LINE_WITH_BRACKET: Final = re.compile(
    r"^(?P<indent>[ \t]*+)(?P<text>[^()\[\]{}\n]*+)(?P<rest>[()\[\]{}].*)", re.MULTILINE
)


class _Bracket(NamedTuple):
    text: str
    indent: int  # of its line, or of the line on which the statement begins
    is_first: bool  # whether it is the first text of its line
    line: int  # number among the text's lines with brackets, from `first_line` on


class BracketCounter:
    """The brackets around one cursor."""

    def __init__(self, prefix: str, suffix: str) -> None:
        before, rest_of_line = line_before(prefix), line_after(suffix)
        self._line_before = before[-_NEARBY_CHARS:]
        self._rest_of_line = rest_of_line[:_NEARBY_CHARS]
        above = prefix[: len(prefix) - len(before)][-_NEARBY_CHARS:]
        self._open: list[_Bracket] = []
        self._num_unmatched_above = _match(self._open, _find_brackets(above))
        self._below = list(
            _find_brackets(suffix[len(rest_of_line) : len(rest_of_line) + _NEARBY_CHARS])
        )
        is_whole = len(suffix) - len(rest_of_line) <= _NEARBY_CHARS
        self._num_closed_far_below = 0 if is_whole else self._count_closed_far_below()

    def _count_closed_far_below(self) -> int:
        """Return the number of brackets that are still open after the nearby text.

        The text further below is assumed to close them. The brackets of the cursor's line, which
        has the number -1, do not count.
        """
        open_brackets = self._open.copy()
        _match(open_brackets, _find_brackets(self._line_before + self._rest_of_line, first_line=-1))
        _match(open_brackets, self._below)
        return sum(bracket.line >= 0 for bracket in open_brackets)

    def count_unmatched(self, completion: str) -> int:
        """Return the number of brackets without a partner, with this completion at the cursor."""
        return self._count_with_line(self._line_before + completion + self._rest_of_line)

    @cached_property
    def num_unmatched_before(self) -> int:
        """The number of brackets without a partner, without a completion.

        It is the smaller of two numbers: with the cursor's line, and without this line.
        """
        return min(self.count_unmatched(""), self._count_with_line(""))

    def _count_with_line(self, text: str) -> int:
        """Return the number of brackets without a partner, with this text as the cursor's line."""
        open_brackets = self._open.copy()
        count = self._num_unmatched_above + _match(open_brackets, _find_brackets(text))
        count += _match(open_brackets, self._below)
        return count + max(0, len(open_brackets) - self._num_closed_far_below)

    def trim(self, before: str, line: str) -> str:
        """Return the line without closing brackets at its end that would have no partner.

        A semicolon or comma after such a bracket is dropped with it. `before` is the completion
        before the line.
        """
        best, min_unmatched = line, self.count_unmatched(before + line)
        while line and (line[-1] in CLOSERS or line[-1] in ";,"):
            line = line[:-1].rstrip()
            count = self.count_unmatched(before + line)
            if count < min_unmatched:
                best, min_unmatched = line, count
        return best


def _find_brackets(text: str, first_line: int = 0) -> Iterator[_Bracket]:
    """Yield the brackets of the text, except brackets in strings and pairs inside one line."""
    text = _STRING.sub("_", text)
    num_pairs = 1
    while num_pairs:
        text, num_pairs = _PAIR.subn("_", text)
    for number, line in enumerate(_LINE_WITH_BRACKET.finditer(text), start=first_line):
        indent, is_first = len(line["indent"]), not line["text"]
        for bracket in _BRACKET.findall(line["rest"]):
            yield _Bracket(bracket, indent, is_first, number)
            is_first = False


def _match(open_brackets: list[_Bracket], brackets: Iterable[_Bracket]) -> int:
    """Match the brackets with the open ones, and return the number of brackets without a partner.

    `open_brackets`, innermost last, is changed: brackets that stay open are added to it.
    """
    count = indent = 0
    line: int | None = None
    for bracket in brackets:
        if bracket.line != line:
            line, indent = bracket.line, bracket.indent
        if bracket.text not in _PARTNERS:
            # In `}, {`, the second brace gets the indentation of the line with the partner of the
            # first one, if that line is indented less.
            is_moved = bracket.indent != indent
            open_brackets.append(bracket._replace(indent=indent) if is_moved else bracket)
            continue
        while open_brackets and _is_left_open(open_brackets, bracket):
            open_brackets.pop()
            count += 1
        if open_brackets and open_brackets[-1].text == _PARTNERS[bracket.text]:
            indent = min(indent, open_brackets.pop().indent)
        else:
            count += 1
    return count


def _is_left_open(open_brackets: list[_Bracket], closer: _Bracket) -> bool:
    """Return whether the innermost open bracket cannot be closed any more."""
    innermost, partner = open_brackets[-1], _PARTNERS[closer.text]
    if closer.is_first and innermost.indent > closer.indent:
        return True
    return innermost.text != partner and any(bracket.text == partner for bracket in open_brackets)
