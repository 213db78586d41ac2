"""A cache of suggestions. While the user types the text of one, no new request is needed. Pure.

A suggestion is stored under the text that was before the cursor in the line of its request. Since
then, the user may have typed a part of it. So any position up to the present cursor may be the
position of a request. The text before this position is then the cache key, and the text after it
was typed since.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from caret_ls.completion_context import CompletionContext
from caret_ls.suggestion import RemainingSuggestion, Suggestion, remaining_at

MAX_SUGGESTIONS: Final = 250
_MAX_TYPED_LINES: Final = 5  # of a suggestion, including the cursor's line
_MAX_LINE_CHARS: Final = 400  # of a cache key; also of the typed text in a line
_CacheKey = tuple[str, str]  # the file's URI, and the text before the cursor in its line


class SuggestionCache:
    """A cache that evicts the least recently used suggestion."""

    def __init__(self, size: int = MAX_SUGGESTIONS) -> None:
        self._size = size
        # The least recently used suggestion is first.
        self._by_key: OrderedDict[_CacheKey, Suggestion] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def store(self, suggestion: Suggestion) -> None:
        key = (suggestion.uri, suggestion.line_before[-_MAX_LINE_CHARS:])
        self._by_key[key] = suggestion
        self._by_key.move_to_end(key)
        if len(self._by_key) > self._size:
            self._by_key.popitem(last=False)

    def find(self, context: CompletionContext) -> RemainingSuggestion | None:
        """Find the rest of a suggestion; None if no suggestion matches.

        If several match, use the one of which the user has typed the fewest characters.
        """
        for key, num_typed in _iterate_keys(context):
            suggestion = self._by_key.get(key)
            if suggestion is None:
                continue
            remainder = remaining_at(context, suggestion, num_typed)
            if remainder is not None:
                self._by_key.move_to_end(key)
                return remainder
        return None

    def discard(self, id: str) -> None:
        """Drop the suggestion with this ID, if it is there."""
        for key in [key for key, suggestion in self._by_key.items() if suggestion.id == id]:
            del self._by_key[key]

    def remove(self, uri: str) -> None:
        """Drop the suggestions of a file."""
        for key in [key for key in self._by_key if key[0] == uri]:
            del self._by_key[key]


def _iterate_keys(context: CompletionContext) -> Iterator[tuple[_CacheKey, int]]:
    """Yield possible cache keys, each with the number of characters typed since its request.

    The positions in the cursor's line come first, from its end; then those in the lines above.
    """
    stop = len(context.prefix)
    for _ in range(_MAX_TYPED_LINES):
        start = max(context.prefix.rfind("\n", 0, stop), context.prefix.rfind("\r", 0, stop)) + 1
        for end in range(stop, max(start, stop - _MAX_LINE_CHARS) - 1, -1):
            key_start = max(start, end - _MAX_LINE_CHARS)
            yield (context.uri, context.prefix[key_start:end]), len(context.prefix) - end
        if start == 0:
            return
        # Continue before the line end of the line above.
        stop = start - (2 if context.prefix.endswith("\r\n", 0, start) else 1)
