"""Whether a completion leaves the file more broken than it was.

"Before" is the file without the line that is being written: where that parses, the completed line
has to parse, too, or to be something that can be finished (an open bracket, a block without its
body). Where it does not, the completion may be as broken as the file is without the line; there,
and where the line says that it goes on, as broken as the half-written line was. When in doubt it is
sound: the filter withholds only what it is sure of.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from tree_sitter import Node, Tree

from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse
from inference.filtering.open_constructs import closing_candidates, is_inside_literal
from inference.filtering.syntax_excerpt import Excerpt, excerpt

Parse = Callable[[bytes], Tree]  # the port to the parser; raises Unparsed

MAX_PARSING_S: Final = 0.06  # of one completion; about 60 short lines take half of it
# A line that ends with one of these goes on with the next.
_GOES_ON: Final = tuple("+-*/%=&|<>?!.\\~^")
_ANNOTATION: Final = ("@", "#[", "#")
# Statements of these run over lines without a sign of it: no line can be called unfinished.
_LENIENT: Final = frozenset({Grammar.SQL, Grammar.HTML, Grammar.YAML})
_DIRECTIVES: Final = frozenset({Grammar.C, Grammar.CPP, Grammar.CSHARP})
_PHP_TAG: Final = "<?php"


def make_parser(grammar: Grammar) -> Parse:
    """For one completion."""
    return partial(parse, grammar, allowance=ParseBudget(total_s=MAX_PARSING_S))


@dataclass(frozen=True, slots=True)
class _ParsedText:
    """What was asked about last, as it is or finished."""

    completion: str
    within: Excerpt
    tree: Tree


class SyntaxChecker:
    """The syntax around one cursor. Parses when it is asked: once where nothing is broken, twice
    where nothing is more broken than it was, else up to ten times."""

    def __init__(self, grammar: Grammar, parse: Parse, *, prefix: str, suffix: str) -> None:
        self._grammar = grammar
        self._parse_bytes = parse
        self._prefix = prefix
        self._suffix = suffix
        self._parsed: _ParsedText | None = None
        self._has_tag = grammar is Grammar.PHP and _PHP_TAG in prefix

    def is_valid(self, completion: str) -> bool:
        """Whether the file is no more broken with the completion than it was before, or nobody can
        tell."""
        try:
            return self._has_no_new_errors(completion)
        except ParseAbandoned:
            return True

    def _has_no_new_errors(self, completion: str) -> bool:
        tree = self._parse(self._near.before + completion + self._near.after)
        self._parsed = _ParsedText(completion, self._near, tree)
        damage = self._count_tree_errors(tree)
        if not damage or self._is_prose or damage <= self._stable_errors_nearby:
            return True
        for finished in self._parse_finished(completion, tree):
            if self._is_allowed(self._count_tree_errors(finished), completion):
                self._parsed = _ParsedText(completion, self._wide, finished)
                return True
        return False

    def _parse_finished(self, completion: str, nearby: Tree) -> Iterator[Tree]:
        """The text with the completion as it is (`nearby`: in the smaller excerpt), and with what
        it may have begun finished."""
        wide = self._wide
        rest, newline, below = wide.after.partition("\n")
        written = wide.before + completion + rest
        yield nearby if wide is self._near else self._parse(f"{written}{newline}{below}")
        for finish in closing_candidates(self._grammar, wide.line_before + completion + rest):
            yield self._parse(f"{written}{finish}{newline}{below}")

    def _is_allowed(self, damage: int, completion: str) -> bool:
        if damage <= self._stable_errors:
            return True
        may_go_on = self._stable_errors or not self._is_whole(completion)
        return bool(may_go_on) and damage <= self._errors_without_completion

    @cached_property
    def _is_prose(self) -> bool:
        """Within a docstring or comment, of which an excerpt may hold one end only."""
        if self._grammar is Grammar.PYTHON:
            return any(self._prefix.count(quotes) % 2 for quotes in ('"""', "'''"))
        has_comments = is_inside_literal(self._grammar, "/*")
        return has_comments and self._prefix.rfind("/*") > self._prefix.rfind("*/")

    @cached_property
    def _near(self) -> Excerpt:
        """Not before the first line is whole: the first token does not wait for it."""
        return excerpt(self._prefix, self._suffix, 0)

    @cached_property
    def _stable_errors_nearby(self) -> int:
        """The damage without the line being written."""
        return self._count_errors(self._near.stable_lines)

    @cached_property
    def _wide(self) -> Excerpt:
        """Where the smaller excerpt is damaged, a larger one may show that it is the excerpt's."""
        return excerpt(self._prefix, self._suffix, 1) if self._stable_errors_nearby else self._near

    @cached_property
    def _stable_errors(self) -> int:
        return self._count_errors(self._wide.stable_lines) if self._stable_errors_nearby else 0

    @cached_property
    def _errors_without_completion(self) -> int:
        """The damage with the half-written line as it stands."""
        return self._count_errors(self._wide.before + self._wide.after)

    def _is_whole(self, completion: str) -> bool:
        if self._grammar in _LENIENT:
            return False
        line = (self._near.line_before + completion).rpartition("\n")[2].strip()
        return not line.endswith(_GOES_ON) and not line.startswith(_ANNOTATION)

    def has_block_ended(self, completion: str, line_start: int) -> bool:
        """Whether the block is over before the completion's line that begins at `line_start`, where
        indentation does not tell: at the top of a file, after the first definition (or anything
        else of several lines). To be asked after `is_valid`; not over where the text is not whole.
        """
        parsed = self._parsed
        if parsed is None or parsed.completion != completion:
            return False
        tree, line = parsed.tree, completion[line_start:]
        is_top = not self._near.line_before and line[:1].strip()
        if not is_top or tree.root_node.has_error:
            return False
        cursor = self._offset(parsed.within.before)
        first = cursor + _num_bytes(completion) - _num_bytes(completion.lstrip())
        return _is_over(
            tree.root_node, first=first, line=cursor + _num_bytes(completion[:line_start])
        )

    def can_continue(self, completion: str, line: str) -> bool:
        """Whether a line that is indented less than the block belongs to it all the same."""
        if self._grammar in _DIRECTIVES and line.lstrip().startswith("#"):
            return True
        return is_inside_literal(self._grammar, self._near.line_before + completion)

    def _count_errors(self, text: str) -> int:
        return self._count_tree_errors(self._parse(text))

    def _count_tree_errors(self, tree: Tree) -> int:
        return count_syntax_errors(tree, looks_everywhere=self._grammar is Grammar.HTML)

    def _parse(self, text: str) -> Tree:
        if self._has_tag and _PHP_TAG not in text:
            text = f"{_PHP_TAG} {text}"
        return self._parse_bytes(text.encode("utf-8", "replace"))

    def _offset(self, before: str) -> int:
        """In the bytes that were parsed, of the end of `before`."""
        is_tagged = self._has_tag and _PHP_TAG not in before
        return _num_bytes(before) + (len(_PHP_TAG) + 1 if is_tagged else 0)


def _is_over(root: Node, *, first: int, line: int) -> bool:
    """Bytes: `first` is the completion's first character that is no white space, `line` the
    line's. Whether the line begins something new, after something of several lines that the
    completion has begun."""
    before = [child for child in root.named_children if child.end_byte <= line]
    has_definition = any(child.start_byte >= first and _num_lines(child) > 1 for child in before)
    return has_definition and any(child.start_byte == line for child in root.named_children)


def _num_lines(node: Node) -> int:
    return node.end_point[0] - node.start_point[0] + 1


def _num_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def count_syntax_errors(tree: Tree, *, looks_everywhere: bool = False) -> int:
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
