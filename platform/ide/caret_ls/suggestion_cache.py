"""A cache of suggestions: text typed into one needs no new request.

An entry is keyed by the text before the cursor in the line of its request, of a long line only the
end. Each way to split the current line gives a possible key, and the part of the suggestion that
was typed since. Pure.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from caret_ls.completion_context import CompletionContext
from caret_ls.suggestion import RemainingSuggestion, Suggestion, remaining_at

MAX_SUGGESTIONS: Final = 250
_MAX_TYPED_LINES: Final = 5  # of a suggestion, including the cursor's line
_MAX_LINE_CHARS: Final = 400  # of a key, and of the typed text in a line
_Key = tuple[str, str]  # file, and the end of the text before the cursor in its line


class SuggestionCache:
    """A cache that evicts the least recently used suggestion."""

    def __init__(self, size: int = MAX_SUGGESTIONS) -> None:
        self._size = size
        self._by_key: OrderedDict[_Key, Suggestion] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def store(self, suggestion: Suggestion) -> None:
        key = (suggestion.uri, suggestion.line_before[-_MAX_LINE_CHARS:])
        self._by_key[key] = suggestion
        self._by_key.move_to_end(key)
        if len(self._by_key) > self._size:
            self._by_key.popitem(last=False)

    def find(self, context: CompletionContext) -> RemainingSuggestion | None:
        """Find the rest of a suggestion; try the one with the fewest typed characters first."""
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
        """Drop one suggestion, if it is there."""
        for key in [key for key, suggestion in self._by_key.items() if suggestion.id == id]:
            del self._by_key[key]

    def remove(self, uri: str | None = None) -> None:
        """Drop the suggestions of one file, or (None) all."""
        for key in [key for key in self._by_key if uri in (None, key[0])]:
            del self._by_key[key]


def _iterate_keys(context: CompletionContext) -> Iterator[tuple[_Key, int]]:
    """Yield possible keys, each with the number of characters typed after its place.

    The cursor's line is split at each place first, then the lines above.
    """
    stop = len(context.prefix)
    for _ in range(_MAX_TYPED_LINES):
        start = max(context.prefix.rfind("\n", 0, stop), context.prefix.rfind("\r", 0, stop)) + 1
        for end in range(stop, max(start, stop - _MAX_LINE_CHARS) - 1, -1):
            key_start = max(start, end - _MAX_LINE_CHARS)
            yield (context.uri, context.prefix[key_start:end]), len(context.prefix) - end
        if start == 0:
            return
        stop = start - 1
