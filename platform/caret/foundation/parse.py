"""parse: the one door to tree-sitter, for texts that may have been made to hurt.

Nothing is parsed that might overflow the parser: YAML's keeps a stack of indents in 1,024 bytes and
does not look at their end, so that the 254th indent kills the process.
"""

import re
from typing import Final

from tree_sitter import Parser, Tree

from caret.foundation.grammars import Grammar, load

# Each indent on the stack is deeper than the one below, but that a sequence may have that of its
# mapping: so many columns make twice as many indents at most, which is well below 253. What people
# write has about twenty.
MAX_YAML_COLUMNS: Final = 100
_LINE: Final = re.compile(rb"[^\r\n]+")
# What may indent within a line: a mark that stands by itself, and what follows it.
_YAML_MARK: Final = re.compile(rb"(?<![^ \t\0])[-?:](?![^ \t\0])[ \t]*+")


class Unparsed(Exception):
    """The text was refused, or given up."""


def parse(grammar: Grammar, source: bytes) -> Tree:
    """Raises Unparsed."""
    if grammar is Grammar.YAML and _num_yaml_columns(source) > MAX_YAML_COLUMNS:
        raise Unparsed
    return Parser(load(grammar)).parse(source)


def _num_yaml_columns(source: bytes) -> int:
    """Counted in bytes; of all lines: the parser forgets no indent within quotes or brackets."""
    columns: set[int] = set()
    for line in _LINE.findall(source):
        columns.add(len(line) - len(line.lstrip(b" \t")))
        for mark in _YAML_MARK.finditer(line):
            columns.update(mark.span())
    return len(columns)
