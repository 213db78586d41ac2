"""A suggestion, and the rest of it after the user has typed a part. Pure."""

from dataclasses import dataclass
from typing import Final

from caret_ls.completion_context import CompletionContext

# The text before and after the cursor that must be the same to reuse a suggestion. Text further
# away hardly matters, and a cache with a whole file for each suggestion would need too much memory.
HEAD_CHARS: Final = 2_000
_TAIL_CHARS: Final = 500
# Characters that editors add after the cursor while the user types.
_CLOSERS: Final = frozenset(")]}>\"'`")
_MAX_CLOSERS: Final = 4


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion, and the place in a file that it was requested for."""

    id: str  # the ID that this server chose for its request
    uri: str
    text: str
    head: str  # text before the cursor, up to HEAD_CHARS
    tail: str  # text after the cursor, up to _TAIL_CHARS
    line_before: str  # the part of the cursor's line before the cursor
    request_id: str = ""  # the gateway's ID of the request; "": not received
    is_whole: bool = True  # False: more text may arrive


@dataclass(frozen=True, slots=True)
class RemainingSuggestion:
    """The rest of a suggestion after the user has typed a part of it."""

    suggestion: Suggestion
    text: str
    # Number of characters after the cursor that the text replaces: closing brackets and quotes that
    # the editor has inserted, and that the suggestion also contains.
    replaces: int
    # Monotonic time at which the request was sent; None: the text was already in the cache.
    sent_s: float | None = None

    @property
    def is_typed_into(self) -> bool:
        """Return True if the user has typed a part of the suggestion."""
        return len(self.text) < len(self.suggestion.text)


def create_suggestion(
    context: CompletionContext, text: str, *, id: str, request_id: str = "", is_whole: bool = True
) -> Suggestion:
    return Suggestion(
        id=id,
        uri=context.uri,
        text=text,
        head=context.prefix[-HEAD_CHARS:],
        tail=context.suffix[:_TAIL_CHARS],
        line_before=context.line_before,
        request_id=request_id,
        is_whole=is_whole,
    )


def remaining_at(
    context: CompletionContext, suggestion: Suggestion, num_typed: int
) -> RemainingSuggestion | None:
    """Return the rest of a suggestion if the user typed `num_typed` characters of it.

    These are the last characters before the cursor. None: they are not the start of the suggestion,
    the text around the cursor is not that of the request, or only white space is left. The rest is
    empty only if the suggestion is empty: the gateway had no text for this place.
    """
    request_offset = len(context.prefix) - num_typed
    remaining_text = suggestion.text[num_typed:]
    is_known_empty = not suggestion.text and num_typed == 0
    if request_offset < 0 or not (remaining_text.strip() or is_known_empty):
        return None
    if not suggestion.text.startswith(context.prefix[request_offset:]):
        return None
    if not context.prefix.endswith(suggestion.head, 0, request_offset):
        return None
    replaces = _count_added_closers(context, suggestion, remaining_text)
    return None if replaces is None else RemainingSuggestion(suggestion, remaining_text, replaces)


def _count_added_closers(
    context: CompletionContext, suggestion: Suggestion, remaining_text: str
) -> int | None:
    """Return how many characters the editor has added after the cursor.

    None: the text after them is not the text after the cursor of the request.
    """
    for count in range(_MAX_CLOSERS + 1):
        closers = context.suffix[:count]
        if not _CLOSERS.issuperset(closers):
            return None
        tail = context.suffix[count : count + _TAIL_CHARS]
        if tail == suggestion.tail and _contains_in_order(remaining_text, closers):
            return count
    return None


def _contains_in_order(text: str, closers: str) -> bool:
    """Return whether the text contains the closers in this order, perhaps with others between."""
    remaining_text = iter(text)  # each `in` continues after the character that the last one found
    return all(closer in remaining_text for closer in closers)
