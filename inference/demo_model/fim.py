"""Cuts a source text at a cursor and lays the parts out as the gateway does.

PSM:           <|fim_prefix|> prefix <|fim_suffix|> suffix <|fim_middle|> middle <|endoftext|>
SPM variant 2: <|fim_prefix|> <|fim_suffix|> suffix <|fim_middle|> prefix middle <|endoftext|>

Knows nothing about tokens: a layout is made of ids that the caller has encoded, each part apart,
so that a cursor in mid-word needs no healing.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_SPAN_CHARS = 400
LINE_COUNT_WEIGHTS = (65, 15, 10, 10)  # one to four lines
AT_INDENT_SHARE = 0.3  # cursors where an editor leaves them after Enter


class Order(StrEnum):
    PSM = "psm"
    SPM = "spm"


@dataclass(frozen=True, slots=True)
class Cut:
    prefix: str
    middle: str
    suffix: str


@dataclass(frozen=True, slots=True)
class FimIds:
    prefix: int
    suffix: int
    middle: int
    end: int


def cut_span(text: str, rng: random.Random) -> Cut:
    """A middle of any characters, short ones more often."""
    start = rng.randrange(len(text) + 1)
    num_chars = int(MAX_SPAN_CHARS ** rng.random())
    return _cut(text, start, min(len(text), start + num_chars))


def cut_lines(text: str, rng: random.Random) -> Cut:
    """From a cursor, mostly inside a line, to the end of that line or of one of the next three."""
    starts = _line_starts(text)
    line = rng.choice(_filled_lines(text, starts))
    num_lines = rng.choices((1, 2, 3, 4), LINE_COUNT_WEIGHTS)[0]
    cursor = _cursor_in_line(text, starts[line], rng)
    last = min(line + num_lines - 1, len(starts) - 1)
    return _cut(text, cursor, max(cursor, _line_end(text, starts[last])))


def cut_line_at(text: str, cursor: int) -> Cut:
    """From the cursor to the end of its line."""
    return _cut(text, cursor, _line_end(text, cursor))


def arrange(
    order: Order,
    ids: FimIds,
    *,
    prefix: Sequence[int],
    middle: Sequence[int],
    suffix: Sequence[int],
) -> list[int]:
    return [*prompt(order, ids, prefix=prefix, suffix=suffix), *middle, ids.end]


def prompt(order: Order, ids: FimIds, *, prefix: Sequence[int], suffix: Sequence[int]) -> list[int]:
    if order is Order.PSM:
        return [ids.prefix, *prefix, ids.suffix, *suffix, ids.middle]
    return [ids.prefix, ids.suffix, *suffix, ids.middle, *prefix]


def _cut(text: str, start: int, end: int) -> Cut:
    return Cut(text[:start], text[start:end], text[end:])


def _line_starts(text: str) -> list[int]:
    starts = [0]
    while (newline := text.find("\n", starts[-1])) >= 0:
        starts.append(newline + 1)
    return starts


def _filled_lines(text: str, starts: Sequence[int]) -> Sequence[int]:
    """Their numbers: on blank lines the model would learn to say nothing. All, if all are blank."""
    filled = [n for n, start in enumerate(starts) if text[start : _line_end(text, start)].strip()]
    return filled or range(len(starts))


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline


def _cursor_in_line(text: str, start: int, rng: random.Random) -> int:
    line = text[start : _line_end(text, start)]
    indent = len(line) - len(line.lstrip())
    if rng.random() < AT_INDENT_SHARE:
        return start + indent
    return start + rng.randint(indent, len(line))
