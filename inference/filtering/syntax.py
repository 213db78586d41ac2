"""Whether a completion leaves the file more broken than it was.

"Before" is the file without the line that is being written: where that parses, the completed line
has to parse, too, or to be something that can be finished (an open bracket, a block without its
body). Where it does not, or the line says that it goes on, the completion may be as broken as the
half-written line was. When in doubt it is sound: the filter withholds only what it is sure of.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Final

from tree_sitter import Node, Parser, Tree

from caret.foundation.grammars import Grammar, load
from inference.filtering.excerpt import SIZES, Excerpt, excerpt
from inference.filtering.unfinished import finishes

Parse = Callable[[bytes], Tree]  # the port to the parser

# A line that ends with one of these goes on with the next.
_GOES_ON: Final = tuple("+-*/%=&|<>?!.\\~^")
_ANNOTATION: Final = ("@", "#[", "#")
# Statements of these run over lines without a sign of it: no line can be called unfinished.
_LENIENT: Final = frozenset({Grammar.SQL, Grammar.HTML, Grammar.YAML})
_PHP_TAG: Final = "<?php"


@cache
def parser_of(grammar: Grammar) -> Parse:
    return Parser(load(grammar)).parse


class Syntax:
    """The syntax around one cursor. Parses when it is asked, at most eight times a question."""

    def __init__(self, grammar: Grammar, parse: Parse, *, prefix: str, suffix: str) -> None:
        self._grammar = grammar
        self._parse_bytes = parse
        self._prefix = prefix
        self._suffix = suffix
        self._has_tag = grammar is Grammar.PHP and _PHP_TAG in prefix

    def is_sound(self, completion: str) -> bool:
        """Whether the file is no more broken with the completion than it was before."""
        near = self._near
        if not self._damage(near.before + completion + near.after) or self._is_prose:
            return True
        near, settled = self._settled
        allowed = settled
        if settled or not self._is_whole(completion):
            allowed = max(settled, self._unwritten)
        rest, newline, below = near.after.partition("\n")
        written = near.before + completion
        line = near.line_before + completion + rest
        variants = ("", *finishes(self._grammar, line))
        return any(
            self._damage(f"{written}{rest}{finish}{newline}{below}") <= allowed
            for finish in variants
        )

    @cached_property
    def _is_prose(self) -> bool:
        """Within a docstring, of which an excerpt may hold one end only."""
        if self._grammar is not Grammar.PYTHON:
            return False
        return any(self._prefix.count(quotes) % 2 for quotes in ('"""', "'''"))

    @cached_property
    def _near(self) -> Excerpt:
        return excerpt(self._prefix, self._suffix, 0)

    @cached_property
    def _settled(self) -> tuple[Excerpt, int]:
        """The smallest excerpt that parses without the line being written, and its damage."""
        settled = 0
        near = self._near
        for size in range(len(SIZES)):
            near = excerpt(self._prefix, self._suffix, size) if size else near
            settled = self._damage(near.settled)
            if not settled:
                break
        return near, settled

    @cached_property
    def _unwritten(self) -> int:
        """The damage with the half-written line as it stands."""
        near, _ = self._settled
        return self._damage(near.before + near.after)

    def _is_whole(self, completion: str) -> bool:
        if self._grammar in _LENIENT:
            return False
        line = (self._near.line_before + completion).rpartition("\n")[2].strip()
        return not line.endswith(_GOES_ON) and not line.startswith(_ANNOTATION)

    def _damage(self, text: str) -> int:
        if self._has_tag and _PHP_TAG not in text:
            text = f"{_PHP_TAG} {text}"
        tree = self._parse_bytes(text.encode("utf-8", "replace"))
        return damage(tree, looks_everywhere=self._grammar is Grammar.HTML)


def damage(tree: Tree, *, looks_everywhere: bool = False) -> int:
    """How many places the parser had to skip text at, or to make some up. HTML's end tags that
    nothing has begun are no errors to its parser, so all of its tree is looked at."""
    count = 0
    open_nodes: list[Node] = [tree.root_node]
    while open_nodes:
        node = open_nodes.pop()
        if node.is_error or node.is_missing or node.type == "erroneous_end_tag":
            count += 1
        if node.has_error or looks_everywhere:
            open_nodes += node.children
    return count
