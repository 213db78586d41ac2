"""Cuts a source text at a cursor, and arranges the parts as the gateway does.

PSM:           <|fim_prefix|> prefix <|fim_suffix|> suffix <|fim_middle|> middle <|endoftext|>
SPM:           <|fim_suffix|> suffix <|fim_prefix|> prefix <|fim_middle|> middle <|endoftext|>
SPM variant 2: <|fim_prefix|> <|fim_suffix|> suffix <|fim_middle|> prefix middle <|endoftext|>

For training, each part is encoded separately. So the model learns to continue a partial word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class TrainingOrder(StrEnum):
    """The order of the parts in a training document."""

    PSM = "psm"
    SPM = "spm"
    SPM_VARIANT_2 = "spm2"


@dataclass(frozen=True, slots=True)
class FimCut:
    """A text in three parts. The model gets the prefix and the suffix, and writes the middle."""

    prefix: str
    middle: str
    suffix: str


@dataclass(frozen=True, slots=True)
class FimIds:
    """The token IDs of the markers above."""

    prefix: int
    suffix: int
    middle: int
    end: int  # <|endoftext|>


def cut_line_at(text: str, cursor: int) -> FimCut:
    """Cut the text at the cursor and at the end of its line. The middle is the rest of the line."""
    return _cut_at(text, cursor, _line_end(text, cursor))


def arrange_document(
    order: TrainingOrder,
    ids: FimIds,
    *,
    prefix: Sequence[int],
    middle: Sequence[int],
    suffix: Sequence[int],
) -> list[int]:
    """Return the tokens of a training document: a prompt, its middle and the end token."""
    return [*arrange_prompt(order, ids, prefix=prefix, suffix=suffix), *middle, ids.end]


def arrange_prompt(
    order: TrainingOrder, ids: FimIds, *, prefix: Sequence[int], suffix: Sequence[int]
) -> list[int]:
    """Return the tokens after which the model writes the middle."""
    if order is TrainingOrder.PSM:
        return [ids.prefix, *prefix, ids.suffix, *suffix, ids.middle]
    if order is TrainingOrder.SPM:
        return [ids.suffix, *suffix, ids.prefix, *prefix, ids.middle]
    return [ids.prefix, ids.suffix, *suffix, ids.middle, *prefix]


def _cut_at(text: str, start: int, end: int) -> FimCut:
    return FimCut(text[:start], text[start:end], text[end:])


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline
