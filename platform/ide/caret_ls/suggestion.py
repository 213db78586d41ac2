"""A suggestion, and what is left of it once somebody has typed a part of it. Pure."""

from dataclasses import dataclass
from typing import Final

from caret_ls.completion_context import CompletionContext

# What must stand around the cursor for a suggestion to be good again: further away hardly matters,
# and 250 whole files would.
HEAD_CHARS: Final = 2_000
_TAIL_CHARS: Final = 500
# What editors put behind the cursor by themselves, at what somebody types.
_CLOSERS: Final = frozenset(")]}>\"'`")
_MAX_CLOSERS: Final = 4


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`id`: the request's, by which this server knows it, and the connection that it went over."""

    id: str
    uri: str
    text: str
    head: str  # up to HEAD_CHARS before the cursor, where it was asked for
    tail: str  # after it
    line_before: str
    request_id: str = ""  # by which all gateways know it; "": it was not told


@dataclass(frozen=True, slots=True)
class RemainingSuggestion:
    """What is still to be shown at a place, in place of the next `replaces` characters there: the
    editor has closed brackets that the suggestion closes, too."""

    suggestion: Suggestion
    text: str
    replaces: int


def create_suggestion(
    place: CompletionContext, text: str, *, id: str, request_id: str = ""
) -> Suggestion:
    return Suggestion(
        id=id,
        uri=place.uri,
        text=text,
        head=place.prefix[-HEAD_CHARS:],
        tail=place.suffix[:_TAIL_CHARS],
        line_before=place.line_before,
        request_id=request_id,
    )


def remaining_at(
    place: CompletionContext, suggestion: Suggestion, num_typed: int
) -> RemainingSuggestion | None:
    """As if the last `num_typed` characters before the cursor were typed since; None: they were
    not, or something else was, or nothing is left. An empty one: at this very place there was
    nothing to suggest."""
    stop = len(place.prefix) - num_typed
    left = suggestion.text[num_typed:]
    is_known_barren = not suggestion.text and num_typed == 0
    if stop < 0 or not (left.strip() or is_known_barren):
        return None
    if not suggestion.text.startswith(place.prefix[stop:]):
        return None
    if not place.prefix.endswith(suggestion.head, 0, stop):
        return None
    replaces = _num_closed(place, suggestion, left)
    return None if replaces is None else RemainingSuggestion(suggestion, left, replaces)


def _num_closed(place: CompletionContext, suggestion: Suggestion, left: str) -> int | None:
    """How many characters the editor has put behind the cursor; None: what stands there is
    something else."""
    for count in range(_MAX_CLOSERS + 1):
        closers = place.suffix[:count]
        if not _CLOSERS.issuperset(closers):
            return None
        here = place.suffix[count : count + _TAIL_CHARS]
        if here == suggestion.tail and _closes(left, closers):
            return count
    return None


def _closes(left: str, closers: str) -> bool:
    """Whether the suggestion brings these characters itself, in their order."""
    rest = iter(left)
    return all(closer in rest for closer in closers)
