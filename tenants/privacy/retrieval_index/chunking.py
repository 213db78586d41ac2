"""Chunking of files by their grammar into definitions, or into windows of lines.

Windows are used if there is no grammar or the file cannot be parsed.

    1. Split: a node of more than MAX_LINES is replaced by its children.
    2. Merge: neighbours are joined until together they have MIN_LINES, but not beyond MAX_LINES.

The algorithm is cAST (Zhang et al. 2025, "Enhancing Code RAG with Structural Chunking via Abstract
Syntax Tree"), but sizes are counted in lines. It needs no list of the kinds of definitions in each
language: a function of up to MAX_LINES and MAX_CHUNK_CHARS stays whole, usually together with the
comment before it.

Pure. A file with a very long line gives no chunks, because the file is minified or contains data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from caret.foundation.parsing.grammars import Grammar, grammar_of
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse

MIN_LINES: Final = 10
MAX_LINES: Final = 60
WINDOW_LINES: Final = 40  # without a grammar, or in a long node that cannot be split
MAX_CHUNKS: Final = 100  # per file
MAX_CHUNK_CHARS: Final = 3_000  # the rest of a longer chunk is dropped
MAX_LINE_CHARS: Final = 1_000  # a longer line means that the file is minified or contains data
_MIN_TEXT_LINES: Final = 3  # lines that contain a letter; a chunk with fewer such lines is dropped
MAX_PARSING_S: Final = 0.2  # per file; 50,000 characters take 10 ms
_MAX_DEPTH: Final = 60  # of nodes that are split; hand-written code is hardly ever so deep

_Span = tuple[int, int]  # first and last line, both inclusive, from 0


@dataclass(frozen=True, slots=True)
class Chunk:
    first_line: int  # from 1
    last_line: int  # inclusive
    text: str  # without the last newline; cut off after MAX_CHUNK_CHARS


def split_into_chunks(path: str, text: str) -> list[Chunk]:
    """Return up to MAX_CHUNKS chunks in the order of lines, without overlaps."""
    lines = text.split("\n")
    if any(len(line) > MAX_LINE_CHARS for line in lines):
        return []
    spans = _join_spans(_find_spans(path, text, num_lines=len(lines)))
    chunks = (_make_chunk(lines, span) for span in spans)
    return [chunk for chunk in chunks if _is_worth_keeping(chunk)][:MAX_CHUNKS]


def _find_spans(path: str, text: str, *, num_lines: int) -> Iterable[_Span]:
    grammar = grammar_of(language="", path=path)
    root = _parse_text(grammar, text) if grammar is not None else None
    if root is None:
        return _make_windows(0, num_lines - 1)
    return _drop_overlaps(_split_node(root, depth=0))


def _parse_text(grammar: Grammar, text: str) -> Node | None:
    """Parse the text; None: it could not be parsed."""
    try:
        budget = ParseBudget(total_s=MAX_PARSING_S, each_s=MAX_PARSING_S)
        return parse(grammar, text.encode("utf-8", "replace"), budget).root_node
    except ParseAbandoned:
        return None


def _split_node(node: Node, *, depth: int) -> Iterator[_Span]:
    """Yield the span of the node or, if it is too long, the spans of its children (step 1)."""
    first, last = node.start_point.row, node.end_point.row
    if last - first + 1 <= MAX_LINES:
        yield first, last
    elif not node.children or depth >= _MAX_DEPTH:
        yield from _make_windows(first, last)
    else:
        for child in node.children:
            yield from _split_node(child, depth=depth + 1)


def _make_windows(first: int, last: int) -> Iterator[_Span]:
    for start in range(first, last + 1, WINDOW_LINES):
        yield start, min(start + WINDOW_LINES - 1, last)


def _drop_overlaps(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Give a line that two neighbours share (`} else {`) to the first."""
    end = -1
    for first, last in spans:
        if last > end:
            yield max(first, end + 1), last
            end = last


def _join_spans(spans: Iterable[_Span]) -> Iterator[_Span]:
    """Join short spans with the spans after them (step 2)."""
    pending: _Span | None = None
    for first, last in spans:
        if pending is None:
            pending = first, last
            continue
        pending_first, pending_last = pending
        is_short = pending_last - pending_first + 1 < MIN_LINES
        if is_short and last - pending_first + 1 <= MAX_LINES:
            pending = pending_first, last
        else:
            yield pending
            pending = first, last
    if pending is not None:
        yield pending


def _make_chunk(lines: Sequence[str], span: _Span) -> Chunk:
    first, last = span
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last].strip():
        last -= 1
    text = "\n".join(lines[first : last + 1])[:MAX_CHUNK_CHARS]
    # The end is counted in the text, because the text may have been cut off.
    return Chunk(first_line=first + 1, last_line=first + 1 + text.count("\n"), text=text)


def _is_worth_keeping(chunk: Chunk) -> bool:
    lines = (line for line in chunk.text.split("\n") if any(letter.isalpha() for letter in line))
    return sum(1 for _ in lines) >= _MIN_TEXT_LINES
