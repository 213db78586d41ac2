"""The lines of a text as tokens, and the windows over them. Pure.

Windows are computed from the tokens, without the text of the lines.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from inference.context.tokenization.text_window import ANCHOR_EVERY, MAX_SKIPPED_SHARE, is_anchor


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """The end of the text before the cursor."""

    token_ids: list[int]
    # Index of the first token that may still change while the user types: usually the start of the
    # last anchor line. The order FimOrder.EFIM puts this part after the suffix.
    unstable_from: int = 0


@dataclass(frozen=True, slots=True)
class TokenizedLines:
    """Whole lines above or below the line being typed, which is not among them."""

    token_ids: list[int]
    starts: list[int]  # token index of each line's beginning, and of the last line's end
    anchors: list[int]  # ascending indexes of the lines that may begin a window

    @property
    def num_lines(self) -> int:
        return len(self.starts) - 1

    @property
    def _last_line(self) -> list[int]:
        return self.token_ids[self.starts[-2:][0] :]  # without lines, `starts` is [0]

    def clip_beginning(self, current_line: list[int], *, max_tokens: int) -> list[int]:
        """Return the line being typed and the lines after it that fit completely.

        If not even the first line fits, it is truncated.
        """
        room = max_tokens - len(current_line)
        if room < 0:
            return current_line[: max(0, max_tokens)]
        num_fitting_lines = bisect_right(self.starts, room) - 1
        is_first_line_cut = num_fitting_lines == 0 and not current_line
        end = room if is_first_line_cut else self.starts[num_fitting_lines]
        return [*current_line, *self.token_ids[:end]]

    def slide(self, current_line: list[int] | None, *, max_tokens: int) -> PromptWindow:
        """Return a window that ends with the line being typed and has `max_tokens` if possible.

        `current_line` None: a line was just finished, and the next one is empty.
        """
        return PromptWindow(_take_end([*self.token_ids, *(current_line or ())], max_tokens))

    def anchor(
        self, current_line: list[int] | None, *, max_tokens: int, is_whole: bool
    ) -> PromptWindow:
        """Return a window that begins with an anchor, or with the text if all of it fits.

        `is_whole`: these lines are the whole text before the current line. Without a near anchor,
        the window begins with the first line that fits.
        """
        num_current = len(current_line or ())
        # The first line from which on all tokens fit.
        first = bisect_left(self.starts, len(self.token_ids) - (max_tokens - num_current))
        if first > self.num_lines or (current_line is None and first == self.num_lines):
            # Not even the last line fits.
            return PromptWindow(
                _take_end(self._last_line if current_line is None else current_line, max_tokens)
            )
        if first > 0 or not is_whole:
            first = self._find_first_anchor(first, num_current)
        start = self.starts[first]
        # A line that was just finished counts like the line being typed, so that the unstable part
        # does not move when the user ends a line.
        num_stable = self.num_lines - 1 if current_line is None else self.num_lines
        return PromptWindow(
            [*self.token_ids[start:], *(current_line or ())],
            unstable_from=self.starts[self._find_unstable_start(first, num_stable)] - start,
        )

    def _find_first_anchor(self, first: int, num_current: int) -> int:
        """Return the first anchor at or after the line `first`.

        If there is none, or too much would be skipped, return `first`.
        """
        start = self.starts[first]
        spare = int(MAX_SKIPPED_SHARE * (len(self.token_ids) - start + num_current))
        end = bisect_right(self.starts, start + spare) - 1  # the anchor must be above this line
        index = bisect_left(self.anchors, first)
        next_anchor = self.anchors[index : index + 1]
        return next_anchor[0] if next_anchor and next_anchor[0] < end else first

    def _find_unstable_start(self, first: int, last: int) -> int:
        """Return the last anchor before the line `last`.

        If it is more than ANCHOR_EVERY lines above, or above `first`, return the first line within
        these limits.
        """
        min_start = max(first, last - ANCHOR_EVERY)
        index = bisect_left(self.anchors, last) - 1
        return max(min_start, self.anchors[index]) if index >= 0 else min_start


def join_lines(lines: Sequence[str], encoded: Sequence[list[int]]) -> TokenizedLines:
    """Join lines. `encoded` has the tokens of each line."""
    return TokenizedLines(
        token_ids=list(chain.from_iterable(encoded)),
        starts=[0, *accumulate(map(len, encoded))],
        anchors=[index for index, line in enumerate(lines) if is_anchor(line)],
    )


def _take_end(token_ids: list[int], max_tokens: int) -> list[int]:
    return token_ids[-max_tokens:] if max_tokens > 0 else []
