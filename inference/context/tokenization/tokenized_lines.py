"""The lines of a text as tokens, and which of them a window takes. Pure.

Once made, a passage answers for any window over it without looking at a line again.
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
    # Of the tokens, where the last line begins that a window may begin with: what is behind it is
    # not settled yet (see Order.EFIM).
    typed_from: int = 0


@dataclass(frozen=True, slots=True)
class TokenizedLines:
    """Whole lines, none of which is being typed."""

    token_ids: list[int]
    starts: list[int]  # of each line among the tokens, and where the last one ends
    anchors: list[int]  # ascending: the lines that may begin a window

    @property
    def num_lines(self) -> int:
        return len(self.starts) - 1

    @property
    def _last_line(self) -> list[int]:
        return self.token_ids[self.starts[-2:][0] :]

    def clip_beginning(self, typed: list[int], *, max_tokens: int) -> list[int]:
        """The line being typed and whole lines behind it; of a single one that is too long, its
        beginning."""
        room = max_tokens - len(typed)
        if room < 0:
            return typed[: max(0, max_tokens)]
        end = bisect_right(self.starts, room) - 1
        return [*typed, *self.token_ids[: self.starts[end] if end or typed else room]]

    def slide(self, typed: list[int] | None, *, max_tokens: int) -> PromptWindow:
        """A window that ends with the line being typed, if there is one (None: a line was just
        finished), and begins wherever the room does."""
        return PromptWindow(_end([*self.token_ids, *(typed or ())], max_tokens))

    def anchor(self, typed: list[int] | None, *, max_tokens: int, is_whole: bool) -> PromptWindow:
        """A window that begins with an anchor, or with the text (`is_whole`: this is all of it)."""
        num_typed = len(typed or ())
        first = bisect_left(self.starts, len(self.token_ids) - (max_tokens - num_typed))
        if first > self.num_lines or (typed is None and first == self.num_lines):
            # Not even the last line fits.
            return PromptWindow(_end(self._last_line if typed is None else typed, max_tokens))
        if first > 0 or not is_whole:
            first = self._find_first_anchor(first, num_typed)
        start, settled = self.starts[first], self.num_lines - (typed is None)
        return PromptWindow(
            [*self.token_ids[start:], *(typed or ())],
            typed_from=self.starts[self._find_typed_start(first, settled)] - start,
        )

    def _find_first_anchor(self, first: int, num_typed: int) -> int:
        """From `first` on, but before too much would be given up; else `first`."""
        start = self.starts[first]
        spare = int(MAX_GIVEN_UP * (len(self.token_ids) - start + num_typed))
        end = bisect_right(self.starts, start + spare) - 1
        place = bisect_left(self.anchors, first)
        found = self.anchors[place : place + 1]
        return found[0] if found and found[0] < end else first

    def _find_typed_start(self, first: int, last: int) -> int:
        """The last anchor before the line `last`, but not far before it."""
        least = max(first, last - ANCHOR_EVERY)
        place = bisect_left(self.anchors, last) - 1
        return max(least, self.anchors[place]) if place >= 0 else least


def join_lines(lines: Sequence[str], encoded: Sequence[list[int]]) -> TokenizedLines:
    """`encoded`: the tokens of each line."""
    return TokenizedLines(
        token_ids=list(chain.from_iterable(encoded)),
        starts=[0, *accumulate(map(len, encoded))],
        anchors=[place for place, line in enumerate(lines) if is_anchor(line)],
    )


def _end(token_ids: list[int], max_tokens: int) -> list[int]:
    return token_ids[-max_tokens:] if max_tokens > 0 else []
