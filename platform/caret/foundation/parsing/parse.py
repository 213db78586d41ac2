"""parse: the one door to tree-sitter, for texts that may have been made to hurt.

Rules:
1. Nothing is parsed that might overflow the parser: YAML's keeps a stack of indents in 1,024 bytes
   and does not look at their end, so that the 254th indent kills the process.
2. No parse without an end: a few kilobytes can hold a parser for many seconds (C: `a=>` over and
   over). It may take so many steps for each byte, a bound that depends on the text alone; and
   because steps can be long, so much time, of this thread only. Hence what a busy machine parses is
   nearly the same: only what takes almost as long as it may is parsed at one time and not at
   another.
3. All that share an `Allowance` (a completion, a request's outlines) together have an end, too.
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

# Each indent on the stack is deeper than the one below, but that a sequence may have that of its
# mapping: so many columns make twice as many indents at most, which is well below 253. What people
# write has about twenty.
MAX_YAML_COLUMNS: Final = 100
_LINE: Final = re.compile(rb"[^\r\n]+")
# What may indent within a line: a mark that stands by itself, and what follows it.
_YAML_MARK: Final = re.compile(rb"(?<![^ \t\0])[-?:](?![^ \t\0])[ \t]*+")

# Times that a parser asks whether to stop, of 100 steps each. Of 4,000 files in 14 languages, and
# as many broken pieces of them, 99 in 100 took less than 1.6 steps for each byte (the largest: 2.3,
# of 600 bytes), text made to be slow 4 and more. That has to be stopped on its way: at the end of
# a text the parser no longer asks, and may compare what it has found for a second.
_ASKS_PER_BYTE: Final = 0.03
_MIN_ASKS: Final = 20

_let_go: Final = ctypes.pythonapi.Py_DecRef
_let_go.argtypes, _let_go.restype = [ctypes.py_object], None

IsLate = Callable[[], bool]


class ParseAbandoned(Exception):
    """The text was refused, or given up."""


@dataclass(slots=True)
class ParseBudget:
    """Of time. What is begun within `total_s` may take `each_s`, whatever it leaves: so what comes
    of a text does not depend on what was parsed before, unless nothing is left."""

    total_s: float
    each_s: float = 0.01  # ordinary: 2 ms for 5 KB
    now_s: Callable[[], float] = thread_time
    spent_s: float = 0.0

    @contextmanager
    def parse_slot(self) -> Iterator[IsLate]:
        """Yields what tells whether the time is over. Raises Unparsed: nothing is left."""
        if self.spent_s >= self.total_s:
            raise ParseAbandoned
        began_s = self.now_s()
        try:
            yield lambda: self.now_s() - began_s > self.each_s
        finally:
            self.spent_s += self.now_s() - began_s


def parse(grammar: Grammar, source: bytes, allowance: ParseBudget) -> Tree:
    """Raises Unparsed."""
    if grammar is Grammar.YAML and _num_yaml_columns(source) > MAX_YAML_COLUMNS:
        raise ParseAbandoned
    with allowance.parse_slot() as is_late:
        return _parse(grammar, source, is_late)


def _parse(grammar: Grammar, source: bytes, is_late: IsLate) -> Tree:
    """With a parser of its own (0.3 us): one that was stopped would go on with the old text."""
    # Bash's parser takes quadratic time for these. A copy: see below.
    text = bytes(bytearray(source.replace(b"\0", b" ")))
    asks = iter(range(_MIN_ASKS + int(len(text) * _ASKS_PER_BYTE)))

    def piece(offset: int, _: Point) -> bytes:
        """All at once. Behind the end, and when it goes back from there, byte by byte: of single
        bytes Python has but one each, so that nothing is lost."""
        return text[offset : offset + 1] if offset else text

    def has_to_stop(*_: object) -> bool:
        return next(asks, None) is None or is_late()

    num_references = getrefcount(text)
    try:
        # A parser that is given all the bytes does not ask.
        return Parser(load(grammar)).parse(piece, progress_callback=has_to_stop)
    except ValueError as error:  # the binding's word for a parse that was stopped
        raise ParseAbandoned from error
    finally:
        # The binding (tree-sitter 0.26) never lets go of what `piece` has given: with it all that
        # customers have written would stay. A binding that does is noticed by the count.
        if getrefcount(text) > num_references:
            _let_go(text)


def _num_yaml_columns(source: bytes) -> int:
    """Counted in bytes; of all lines: the parser forgets no indent within quotes or brackets."""
    columns: set[int] = set()
    for line in _LINE.findall(source):
        columns.add(len(line) - len(line.lstrip(b" \t")))
        for mark in _YAML_MARK.finditer(line):
            columns.update(mark.span())
    return len(columns)
