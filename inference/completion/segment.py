"""What a prompt is made of, part by part: kinds and counts, never text. For who wants to know why a
prompt costs what it costs, and how much of it the engine had cached."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain


class SegmentKind(StrEnum):
    """As clients are told it (platform/docs/protocol.md)."""

    MARKERS = "markers"  # the model family's own, which divide the others
    REPOSITORY = "repository"  # its name
    FILES = "files"  # other files, each under its path
    SNIPPETS = "snippets"  # what retrieval has found
    PATH = "path"  # of the cursor's own file
    SUFFIX = "suffix"
    PREFIX = "prefix"
    MESSAGES = "messages"  # of a chat, in the model's template
    RAW = "raw"  # a prompt that came whole


@dataclass(frozen=True, slots=True)
class Segment:
    kind: SegmentKind
    num_tokens: int  # at least 1


@dataclass(frozen=True, slots=True)
class SegmentTokens:
    """A segment while its prompt is being laid out."""

    kind: SegmentKind
    token_ids: list[int]


def join_token_ids(pieces: Iterable[SegmentTokens]) -> list[int]:
    return list(chain.from_iterable(piece.token_ids for piece in pieces))


def count_segments(pieces: Iterable[SegmentTokens]) -> tuple[Segment, ...]:
    """In the order of the prompt, without empty ones; neighbours of one kind are one."""
    segments: list[Segment] = []
    for piece in pieces:
        num_tokens = len(piece.token_ids)
        if segments and segments[-1].kind is piece.kind:
            num_tokens += segments.pop().num_tokens
        if num_tokens:
            segments.append(Segment(piece.kind, num_tokens))
    return tuple(segments)
