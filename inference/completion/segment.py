"""Segments of a prompt: kinds and token counts, never text.

They explain the price of a prompt, and how much of it the engine had cached.
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
    FILES = "files"  # other files, each after its path
    SNIPPETS = "snippets"  # found by retrieval
    DEFINITIONS = "definitions"  # of symbols in the cursor's file, found by the editor
    PATH = "path"  # of the cursor's own file
    SUFFIX = "suffix"  # text after the cursor
    PREFIX = "prefix"  # text before the cursor
    EDITS = "edits"  # recent edits and diagnostics, for a model that proposes edits
    EXCERPT = "excerpt"  # of the cursor's own file, including the editable region
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


def join_token_ids(segments: Iterable[SegmentTokens]) -> list[int]:
    return list(chain.from_iterable(segment.token_ids for segment in segments))


def count_segments(segments: Iterable[SegmentTokens]) -> tuple[Segment, ...]:
    """Return the segments with their numbers of tokens, in the order of the prompt.

    Empty segments are left out. Adjacent segments of one kind become one.
    """
    counted: list[Segment] = []
    for segment in segments:
        num_tokens = len(segment.token_ids)
        if counted and counted[-1].kind is segment.kind:
            num_tokens += counted.pop().num_tokens
        if num_tokens:
            counted.append(Segment(segment.kind, num_tokens))
    return tuple(counted)
