"""Segments of a prompt: kinds and token counts, never text.

They explain why a prompt costs what it costs, and how much of it the engine had cached.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain


class SegmentKind(StrEnum):
    """Segment kinds as clients see them (platform/docs/protocol.md)."""

    MARKERS = "markers"  # markers of the model family between the other segments
    REPOSITORY = "repository"  # name of the repository
    PINNED_FILES = "pinned_files"  # the same for all users of the repository
    FILES = "files"  # other files, each under its path
    SNIPPETS = "snippets"  # found by retrieval
    DEFINITIONS = "definitions"  # of symbols in the cursor's file, found by the editor
    PATH = "path"  # of the cursor's own file
    SUFFIX = "suffix"
    PREFIX = "prefix"
    EDITS = "edits"  # recent edits and diagnostics, for a model that proposes edits
    EXCERPT = "excerpt"  # of the cursor's own file, with the lines that the model may change
    MESSAGES = "messages"  # of a chat, in the model's template
    RAW = "raw"  # a prompt that the client rendered


@dataclass(frozen=True, slots=True)
class Segment:
    kind: SegmentKind
    num_tokens: int  # at least 1


@dataclass(frozen=True, slots=True)
class SegmentTokens:
    """A segment with its tokens, while the prompt is laid out."""

    kind: SegmentKind
    token_ids: list[int]


def join_token_ids(pieces: Iterable[SegmentTokens]) -> list[int]:
    return list(chain.from_iterable(piece.token_ids for piece in pieces))


def count_segments(pieces: Iterable[SegmentTokens]) -> tuple[Segment, ...]:
    """Count the tokens of each segment, in the order of the prompt.

    Empty segments are left out. Adjacent segments of one kind become one.
    """
    segments: list[Segment] = []
    for piece in pieces:
        num_tokens = len(piece.token_ids)
        if segments and segments[-1].kind is piece.kind:
            num_tokens += segments.pop().num_tokens
        if num_tokens:
            segments.append(Segment(piece.kind, num_tokens))
    return tuple(segments)
