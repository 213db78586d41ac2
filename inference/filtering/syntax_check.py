"""Checks whether a completion makes the file's syntax more invalid.

The file's errors with the completion are compared with its errors without the cursor's line. If the
file is valid without the line, the file must be valid with the completed line, or the line must be
incomplete but valid (an open bracket, a block without its body). If the file is invalid without the
line, the completed line must not add errors.

In three cases it is also enough that the completion adds no errors to the file as it is now, with
the user's unfinished line: the file is invalid without the line; the line begins with a closing
bracket; or the completion's last line is visibly incomplete. In doubt the completion is accepted:
the filter withholds only clear errors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from tree_sitter import Node, Tree

from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse
from inference.filtering.open_constructs import find_closing_candidates, is_inside_literal
from inference.filtering.syntax_excerpt import Excerpt, extract_excerpt
from inference.filtering.truncation.brackets import CLOSERS

Parse = Callable[[bytes], Tree]  # the port to the parser; raises ParseAbandoned

MAX_PARSING_S: Final = 0.06  # CPU time for one completion; about 60 short lines take half of it
# A line that ends with one of these continues on the next line.
_CONTINUATION_ENDS: Final = tuple("+-*/%=&|<>?!.\\~^")
# A line that begins with one of these (a decorator, an attribute, a comment) needs the next line.
_ANNOTATION: Final = ("@", "#")
# Statements of these grammars span lines without any mark, so each line may be incomplete.
_LENIENT: Final = frozenset({Grammar.SQL, Grammar.HTML, Grammar.YAML})
# Grammars with preprocessor directives, which are not indented with their block.
_DIRECTIVES: Final = frozenset({Grammar.C, Grammar.CPP, Grammar.CSHARP})
_PHP_TAG: Final = "<?php"
_NEAR, _WIDE = 0, 1  # indexes into syntax_excerpt.SIZES


def make_parser(grammar: Grammar) -> Parse:
    """Return a parser for one completion."""
    return partial(parse, grammar, budget=ParseBudget(total_s=MAX_PARSING_S))


@dataclass(frozen=True, slots=True)
class _ParsedText:
    """The last checked text, unchanged or with its open constructs closed."""

    completion: str
    excerpt: Excerpt  # around the completion
    tree: Tree


class SyntaxChecker:
    """The syntax around one cursor.

    Parses on demand: once if nothing is invalid, twice if nothing is more invalid than before,
    otherwise up to 13 times.
    """

    def __init__(self, grammar: Grammar, parse: Parse, *, prefix: str, suffix: str) -> None:
        self._grammar = grammar
        self._parse_bytes = parse
        self._prefix = prefix
        self._suffix = suffix
        self._last_parse: _ParsedText | None = None
        self._has_php_tag = grammar is Grammar.PHP and _PHP_TAG in prefix

    def is_valid(self, completion: str) -> bool:
        """Return whether the completion adds no syntax errors. True in doubt."""
        try:
            return self._has_no_new_errors(completion)
        except ParseAbandoned:
            return True

    def _has_no_new_errors(self, completion: str) -> bool:
        tree = self._parse(self._near_excerpt.before + completion + self._near_excerpt.after)
        self._last_parse = _ParsedText(completion, self._near_excerpt, tree)
        num_errors = self._count_tree_errors(tree)
        if not num_errors or self._is_prose or num_errors <= self._num_near_stable_errors:
            return True
        for closed_tree in self._parse_closed(completion, tree):
            if self._is_allowed(self._count_tree_errors(closed_tree), completion):
                self._last_parse = _ParsedText(completion, self._wide_excerpt, closed_tree)
                return True
        return False

    def _parse_closed(self, completion: str, near_tree: Tree) -> Iterator[Tree]:
        """Yield parses of the text, unchanged and with its open constructs closed.

        `near_tree` is the parse of the unchanged text in the smaller excerpt.
        """
        excerpt = self._wide_excerpt
        rest, newline, below = excerpt.after.partition("\n")
        text = excerpt.before + completion + rest
        yield near_tree if excerpt is self._near_excerpt else self._parse(f"{text}{newline}{below}")
        for closing in find_closing_candidates(
            self._grammar, excerpt.line_before + completion + rest
        ):
            yield self._parse(f"{text}{closing}{newline}{below}")

    def _is_allowed(self, num_errors: int, completion: str) -> bool:
        if num_errors <= self._num_stable_errors:
            return True
        # Without a line that begins with a closing bracket, the brackets below have wrong partners.
        # A tuple, because every string contains "", the beginning of a blank line.
        is_closing = self._near_excerpt.line_before.lstrip()[:1] in tuple(CLOSERS)
        may_keep_errors = (
            self._num_stable_errors > 0 or is_closing or not self._is_complete(completion)
        )
        return may_keep_errors and num_errors <= self._num_errors_without_completion

    @cached_property
    def _is_prose(self) -> bool:
        """True if the cursor is in a docstring or comment. An excerpt may lack one end of it."""
        if self._grammar is Grammar.PYTHON:
            return any(self._prefix.count(quotes) % 2 for quotes in ('"""', "'''"))
        has_block_comments = is_inside_literal(self._grammar, "/*")  # `/*` begins a comment
        return has_block_comments and self._prefix.rfind("/*") > self._prefix.rfind("*/")

    @cached_property
    def _near_excerpt(self) -> Excerpt:
        """The smaller excerpt. Computed lazily, so that the first token does not wait for it."""
        return extract_excerpt(self._prefix, self._suffix, _NEAR)

    @cached_property
    def _num_near_stable_errors(self) -> int:
        """The number of errors in the smaller excerpt without the cursor's line."""
        return self._count_errors(self._near_excerpt.stable_lines)

    @cached_property
    def _wide_excerpt(self) -> Excerpt:
        """The larger excerpt if the smaller one has errors: the cut may have caused them."""
        return (
            extract_excerpt(self._prefix, self._suffix, _WIDE)
            if self._num_near_stable_errors
            else self._near_excerpt
        )

    @cached_property
    def _num_stable_errors(self) -> int:
        """The number of errors in the wide excerpt without the cursor's line."""
        if not self._num_near_stable_errors:
            return 0
        return self._count_errors(self._wide_excerpt.stable_lines)

    @cached_property
    def _num_errors_without_completion(self) -> int:
        """The number of errors in the wide excerpt with the cursor's line, but no completion."""
        return self._count_errors(self._wide_excerpt.before + self._wide_excerpt.after)

    def _is_complete(self, completion: str) -> bool:
        if self._grammar in _LENIENT:
            return False
        line = (self._near_excerpt.line_before + completion).rpartition("\n")[2].strip()
        return not line.endswith(_CONTINUATION_ENDS) and not line.startswith(_ANNOTATION)

    def has_block_ended(self, completion: str, line_start: int) -> bool:
        """Return whether the block ended before the completion's line at `line_start`.

        Only the top level of a file is checked, because indentation does not show the end of a
        block there: the block ends after the first construct of several lines, such as a
        definition. Call `is_valid` with the same completion first. False if the parsed text has
        errors.
        """
        last_parse = self._last_parse
        if last_parse is None or last_parse.completion != completion:
            return False
        tree, line = last_parse.tree, completion[line_start:]
        # Neither the cursor's line nor this line is indented.
        is_top = not self._near_excerpt.line_before and line[:1].strip()
        if not is_top or tree.root_node.has_error:
            return False
        cursor = self._byte_offset(last_parse.excerpt.before)
        first = cursor + _num_bytes(completion) - _num_bytes(completion.lstrip())
        return _starts_new_construct(
            tree.root_node, first=first, line=cursor + _num_bytes(completion[:line_start])
        )

    def can_continue(self, completion: str, line: str) -> bool:
        """Return whether a line with less indentation still belongs to the block."""
        if self._grammar in _DIRECTIVES and line.lstrip().startswith("#"):
            return True
        return is_inside_literal(self._grammar, self._near_excerpt.line_before + completion)

    def _count_errors(self, text: str) -> int:
        return self._count_tree_errors(self._parse(text))

    def _count_tree_errors(self, tree: Tree) -> int:
        return count_syntax_errors(tree, self._grammar)

    def _parse(self, text: str) -> Tree:
        if self._has_php_tag and _PHP_TAG not in text:
            text = f"{_PHP_TAG} {text}"
        return self._parse_bytes(text.encode("utf-8", "replace"))

    def _byte_offset(self, before: str) -> int:
        """Return the byte offset of the end of `before` in the parsed text."""
        is_tagged = self._has_php_tag and _PHP_TAG not in before
        return _num_bytes(before) + (len(_PHP_TAG) + 1 if is_tagged else 0)


def _starts_new_construct(root: Node, *, first: int, line: int) -> bool:
    """Return whether the line starts another construct after a construct of several lines.

    `first` is the byte offset of the completion's first non-blank character. `line` is the byte
    offset of the line.
    """
    before = [child for child in root.named_children if child.end_byte <= line]
    has_definition = any(child.start_byte >= first and _num_lines(child) > 1 for child in before)
    return has_definition and any(child.start_byte == line for child in root.named_children)


def _num_lines(node: Node) -> int:
    return node.end_point[0] - node.start_point[0] + 1


def _num_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def is_syntax_broken(grammar: Grammar, excerpt: Excerpt, removed: str, added: str) -> bool:
    """Return whether the excerpt has more errors with `added` than with `removed`.

    False in doubt.
    """
    parse_bytes = make_parser(grammar)
    needs_php_tag = grammar is Grammar.PHP and _PHP_TAG not in excerpt.before
    opening = f"{_PHP_TAG}\n" if needs_php_tag else ""
    try:
        tree_before, tree_after = (
            parse_bytes(
                f"{opening}{excerpt.before}{text}{excerpt.after}".encode("utf-8", "replace")
            )
            for text in (removed, added)
        )
    except ParseAbandoned:
        return False
    return count_syntax_errors(tree_after, grammar) > count_syntax_errors(tree_before, grammar)


def count_syntax_errors(tree: Tree, grammar: Grammar) -> int:
    """Count the places at which the parser skipped or added text."""
    # The parser of HTML does not mark nodes above an unmatched end tag as erroneous.
    looks_everywhere = grammar is Grammar.HTML
    count = 0
    open_nodes: list[Node] = [tree.root_node]
    while open_nodes:
        node = open_nodes.pop()
        if node.is_error or node.is_missing or node.type == "erroneous_end_tag":
            count += 1
        if node.has_error or looks_everywhere:
            open_nodes += node.children
    return count
