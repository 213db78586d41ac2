"""The only entry point to tree-sitter, safe for hostile texts.

Rules:

1. A text that might overflow the parser is not parsed. The YAML parser keeps a stack of indents in
   1,024 bytes and does not check its bounds, so the 254th nested indent crashes the process.
2. Each parse is bounded: a few kilobytes can keep a parser busy for many seconds (C: `a=>`
   repeated). The number of steps is limited in proportion to the number of bytes; this limit
   depends on the text alone. Because single steps can be slow, the thread's CPU time is limited as
   well. CPU time depends little on other load. So only a parse that takes almost all of this time
   can succeed at one time and be abandoned at another.
3. Several parses can share a `ParseBudget`, which limits their total time: those of a completion,
   or those of a request's outlines.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from sys import getrefcount
from time import thread_time
from typing import Final

from tree_sitter import Parser, Point, Tree

from caret.foundation.parsing.grammars import Grammar, load

# Columns at which an indent begins. Each indent on the stack is deeper than the one below, except
# that a sequence may have the indent of its mapping. So a text with this many different columns
# needs at most twice as many indents, well below 253. Ordinary files have about twenty columns.
MAX_YAML_COLUMNS: Final = 100
_LINE: Final = re.compile(rb"[^\r\n]+")
# A `-`, `?` or `:` between blanks, and the blanks after it, may begin an indent within a line.
_YAML_MARK: Final = re.compile(rb"(?<![^ \t\0])[-?:](?![^ \t\0])[ \t]*+")

# How often a parser may check whether to stop. It checks every 100 steps, so it may take 3 steps
# for each byte. Measured on 4,000 files in 14 languages and as many broken fragments of them: 99 in
# 100 took less than 1.6 steps for each byte (the maximum was 2.3, for 600 bytes). Texts made to be
# slow took 4 steps or more. Their parse must be stopped before it reaches the end of the text.
# After the end, the parser no longer checks, and may compare its results for a second.
_CHECKS_PER_BYTE: Final = 0.03
_MIN_CHECKS: Final = 20  # for short texts

_decrease_refcount: Final = ctypes.pythonapi.Py_DecRef
_decrease_refcount.argtypes, _decrease_refcount.restype = [ctypes.py_object], None

IsLate = Callable[[], bool]  # returns whether the time for a parse is up


class ParseAbandoned(Exception):
    """The text was rejected, no time remained, or the parse was stopped."""


@dataclass(slots=True)
class ParseBudget:
    """A time limit for several parses.

    A parse may take the full `each_s` if any part of `total_s` remains when it starts. So the
    result of a started parse does not depend on the duration of earlier ones.
    """

    total_s: float
    each_s: float = 0.01  # for one parse; 5 KB usually take 2 ms
    now_s: Callable[[], float] = thread_time  # CPU time of the thread
    spent_s: float = 0.0  # by earlier parses

    @contextmanager
    def parse_slot(self) -> Iterator[IsLate]:
        """Yield a function that returns whether the time for this parse is up.

        The time of the block counts as spent. Raises ParseAbandoned if no time remains.
        """
        if self.spent_s >= self.total_s:
            raise ParseAbandoned
        began_s = self.now_s()
        try:
            yield lambda: self.now_s() - began_s > self.each_s
        finally:
            self.spent_s += self.now_s() - began_s


def parse(grammar: Grammar, source: bytes, budget: ParseBudget) -> Tree:
    """Parse a text.

    Raises ParseAbandoned.
    """
    if grammar is Grammar.YAML and _num_yaml_columns(source) > MAX_YAML_COLUMNS:
        raise ParseAbandoned
    with budget.parse_slot() as is_late:
        return _parse(grammar, source, is_late)


def _parse(grammar: Grammar, source: bytes, is_late: IsLate) -> Tree:
    """Parse with a new parser, because a stopped one would continue with the old text.

    Creating a parser takes 0.3 microseconds.
    """
    # Bash's parser takes quadratic time for NUL bytes. The text is always copied, so that
    # nobody else holds the object whose reference count is corrected below.
    text = bytes(bytearray(source.replace(b"\0", b" ")))
    remaining_checks = iter(range(_MIN_CHECKS + int(len(text) * _CHECKS_PER_BYTE)))

    def read_text(offset: int, _: Point) -> bytes:
        """Return the whole text at first, then single bytes.

        The parser also reads at the end of the text, and again when it goes back from there. The
        binding never releases the bytes objects that this function returns (see the end of
        `_parse`). For single bytes, no memory leaks, because Python has only one object for each.
        """
        return text[offset : offset + 1] if offset else text

    def has_to_stop(*_: object) -> bool:
        return next(remaining_checks, None) is None or is_late()

    num_references = getrefcount(text)
    try:
        # With the text instead of a function, the parser would never call `has_to_stop`.
        return Parser(load(grammar)).parse(read_text, progress_callback=has_to_stop)
    except ValueError as error:  # the binding's error for a stopped parse
        raise ParseAbandoned from error
    finally:
        # The Python binding (tree-sitter 0.26) never releases the texts that `read_text` returned:
        # all texts of customers would stay in memory. A later version may release them. The
        # reference count shows which is the case.
        if getrefcount(text) > num_references:
            _decrease_refcount(text)


def _num_yaml_columns(source: bytes) -> int:
    """Return the number of different columns, in bytes, at which an indent may begin.

    All lines count, because the parser keeps its indents even within quotes or brackets.
    """
    columns: set[int] = set()
    for line in _LINE.findall(source):
        columns.add(len(line) - len(line.lstrip(b" \t")))
        for mark in _YAML_MARK.finditer(line):
            columns.update(mark.span())
    return len(columns)
