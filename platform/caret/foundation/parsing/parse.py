"""The only entry point to tree-sitter, safe for hostile texts.

Rules:

1. A text that might overflow the parser is not parsed. The YAML parser keeps a stack of indents in
   1,024 bytes and does not check its bounds, so the 254th indent crashes the process.
2. Each parse is bounded: a few kilobytes can keep a parser busy for many seconds (C: `a=>`
   repeated). The number of steps is limited in proportion to the number of bytes. That limit
   depends on the text alone. Because single steps can be slow, the thread's CPU time is limited as
   well. It depends little on other load, so only a parse close to this limit can succeed at one
   time and be abandoned at another.
3. All parses that share a `ParseBudget` (those of a completion, or of a request's outlines) have a
   common time limit, too.
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

# Each indent on the stack is deeper than the one below, except that a sequence may have the indent
# of its mapping. So a text with this many different columns needs at most twice as many indents,
# well below 253. Ordinary files have about twenty different columns.
MAX_YAML_COLUMNS: Final = 100
_LINE: Final = re.compile(rb"[^\r\n]+")
# A mark between blanks, and the blanks after it, may indent within a line.
_YAML_MARK: Final = re.compile(rb"(?<![^ \t\0])[-?:](?![^ \t\0])[ \t]*+")

# How often a parser may ask whether to stop; it asks every 100 steps. Measured on 4,000 files in 14
# languages and as many broken fragments of them: 99 in 100 took less than 1.6 steps for each byte
# (the maximum was 2.3, for 600 bytes). Texts made to be slow took 4 steps or more. Their parse must
# be stopped before it reaches the end of the text: from there on, the parser no longer asks, and
# may compare its results for a second.
_CHECKS_PER_BYTE: Final = 0.03
_MIN_CHECKS: Final = 20

_decrease_refcount: Final = ctypes.pythonapi.Py_DecRef
_decrease_refcount.argtypes, _decrease_refcount.restype = [ctypes.py_object], None

IsLate = Callable[[], bool]


class ParseAbandoned(Exception):
    """The text was rejected, or its parse was stopped."""


@dataclass(slots=True)
class ParseBudget:
    """A time limit for several parses.

    A parse that starts while any of `total_s` remains may take the full `each_s`. So its result
    does not depend on how long earlier parses took.
    """

    total_s: float
    each_s: float = 0.01  # usually 2 ms for 5 KB
    now_s: Callable[[], float] = thread_time
    spent_s: float = 0.0

    @contextmanager
    def parse_slot(self) -> Iterator[IsLate]:
        """Yield a function that tells whether the time is up.

        Raises ParseAbandoned if no time remains.
        """
        if self.spent_s >= self.total_s:
            raise ParseAbandoned
        began_s = self.now_s()
        try:
            yield lambda: self.now_s() - began_s > self.each_s
        finally:
            self.spent_s += self.now_s() - began_s


def parse(grammar: Grammar, source: bytes, allowance: ParseBudget) -> Tree:
    """Parse a text.

    Raises ParseAbandoned.
    """
    if grammar is Grammar.YAML and _num_yaml_columns(source) > MAX_YAML_COLUMNS:
        raise ParseAbandoned
    with allowance.parse_slot() as is_late:
        return _parse(grammar, source, is_late)


def _parse(grammar: Grammar, source: bytes, is_late: IsLate) -> Tree:
    """Parse with a new parser (0.3 us): a stopped one would continue with the old text."""
    # Bash's parser takes quadratic time for NUL bytes. The text is always copied, so that
    # nobody else holds the object whose reference count is corrected below.
    text = bytes(bytearray(source.replace(b"\0", b" ")))
    remaining_checks = iter(range(_MIN_CHECKS + int(len(text) * _CHECKS_PER_BYTE)))

    def piece(offset: int, _: Point) -> bytes:
        """Return the whole text at first, then single bytes.

        The parser asks for bytes after the end, and again when it goes back from there. Python has
        only one object for each single byte, so nothing leaks.
        """
        return text[offset : offset + 1] if offset else text

    def has_to_stop(*_: object) -> bool:
        return next(remaining_checks, None) is None or is_late()

    num_references = getrefcount(text)
    try:
        # A parser that is given all the bytes never asks.
        return Parser(load(grammar)).parse(piece, progress_callback=has_to_stop)
    except ValueError as error:  # the binding's error for a stopped parse
        raise ParseAbandoned from error
    finally:
        # The binding (tree-sitter 0.26) never releases the texts that `piece` has returned: all of
        # the customers' texts would stay in memory. The reference count shows whether a fixed
        # binding releases them.
        if getrefcount(text) > num_references:
            _decrease_refcount(text)


def _num_yaml_columns(source: bytes) -> int:
    """Return the number of different columns, in bytes, that may start an indent.

    All lines count: the parser keeps its indents even within quotes or brackets.
    """
    columns: set[int] = set()
    for line in _LINE.findall(source):
        columns.add(len(line) - len(line.lstrip(b" \t")))
        for mark in _YAML_MARK.finditer(line):
            columns.update(mark.span())
    return len(columns)
