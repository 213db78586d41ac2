"""The lines of a text as tokens, and the windows over them. Pure.

Any window can be computed without reading the lines again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from inference.context.tokenization.text_window import ANCHOR_EVERY, MAX_GIVEN_UP, is_anchor


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """The end of the text before the cursor."""

    token_ids: list[int]
    # Index of the token that begins the last possible anchor line. The text after it is not stable
    # yet (see FimOrder.EFIM).
    typed_from: int = 0


@dataclass(frozen=True, slots=True)
class TokenizedLines:
    """Whole lines, without the one being typed."""

    token_ids: list[int]
    starts: list[int]  # token index of each line's beginning, and of the last line's end
    anchors: list[int]  # ascending indexes of the lines that may begin a window

    @property
    def num_lines(self) -> int:
        return len(self.starts) - 1

    @property
    def _last_line(self) -> list[int]:
        return self.token_ids[self.starts[-2:][0] :]

    def clip_beginning(self, typed: list[int], *, max_tokens: int) -> list[int]:
        """Return the line being typed and whole lines after it.

        A single line that is too long is truncated.
        """
        room = max_tokens - len(typed)
        if room < 0:
            return typed[: max(0, max_tokens)]
        end = bisect_right(self.starts, room) - 1
        return [*typed, *self.token_ids[: self.starts[end] if end or typed else room]]

    def slide(self, typed: list[int] | None, *, max_tokens: int) -> PromptWindow:
        """Return a window that slides: it ends with the line being typed, and fills the limit.

        `typed` None: a line was just finished.
        """
        return PromptWindow(_take_end([*self.token_ids, *(typed or ())], max_tokens))

    def anchor(self, typed: list[int] | None, *, max_tokens: int, is_whole: bool) -> PromptWindow:
        """Return a window that begins with an anchor, or with the text if `is_whole`."""
        num_typed = len(typed or ())
        first = bisect_left(self.starts, len(self.token_ids) - (max_tokens - num_typed))
        if first > self.num_lines or (typed is None and first == self.num_lines):
            # Not even the last line fits.
            return PromptWindow(_take_end(self._last_line if typed is None else typed, max_tokens))
        if first > 0 or not is_whole:
            first = self._find_first_anchor(first, num_typed)
        start, settled = self.starts[first], self.num_lines - (typed is None)
        return PromptWindow(
            [*self.token_ids[start:], *(typed or ())],
            typed_from=self.starts[self._find_typed_start(first, settled)] - start,
        )

    def _find_first_anchor(self, first: int, num_typed: int) -> int:
        """Return the first anchor from `first` on; `first` if too much would be lost."""
        start = self.starts[first]
        spare = int(MAX_GIVEN_UP * (len(self.token_ids) - start + num_typed))
        end = bisect_right(self.starts, start + spare) - 1
        place = bisect_left(self.anchors, first)
        found = self.anchors[place : place + 1]
        return found[0] if found and found[0] < end else first

    def _find_typed_start(self, first: int, last: int) -> int:
        """Return the last anchor before the line `last`, at most ANCHOR_EVERY lines before it."""
        least = max(first, last - ANCHOR_EVERY)
        place = bisect_left(self.anchors, last) - 1
        return max(least, self.anchors[place]) if place >= 0 else least


def join_lines(lines: Sequence[str], encoded: Sequence[list[int]]) -> TokenizedLines:
    """Join lines. `encoded` has the tokens of each line."""
    return TokenizedLines(
        token_ids=list(chain.from_iterable(encoded)),
        starts=[0, *accumulate(map(len, encoded))],
        anchors=[place for place, line in enumerate(lines) if is_anchor(line)],
    )


def _take_end(token_ids: list[int], max_tokens: int) -> list[int]:
    return token_ids[-max_tokens:] if max_tokens > 0 else []
