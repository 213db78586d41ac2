"""Decides where a completion ends. Pure: generated text in, text to show out.

A line is shown as it grows, but its beginning is held until it certainly belongs to the completion:
text that was shown is never revoked. A completion ends
- with the line, if the request is for a single line;
- before a line that leaves the block of the cursor;
- before a line that repeats the first line of the suffix;
- before a line, or the first of up to four lines, that would occur a third time in a row;
- where a line becomes repetitive;
- before a character that could not be decoded (U+FFFD), usually an incomplete one. White space and
  a repetition of the rest of the cursor's line are held, and dropped at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.filtering.filter_reason import FilterReason
from inference.filtering.overlap import SuffixOverlap
from inference.filtering.repetition import CHECK_EVERY, RecentLines, is_repeating

_CLOSERS: Final = ")]}"
_OPENERS: Final = "([{"
_UNSPELT: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class TruncationContext:
    """The text around the cursor, as far as truncation needs it."""

    is_single_line: bool
    is_fresh_line: bool  # only white space before the cursor on its line
    # In columns. A line indented less than this leaves the block. None: there is no block.
    min_indent: int | None
    is_ended_by_blank_line: bool
    rest_of_line: str  # the text after the cursor on its line, stripped
    # The first non-blank line after the cursor's, with its indentation; "" if there is none.
    next_line: str


# Whether a line continues the block despite its indentation. Arguments: the text before it, the
# line.
CanContinue = Callable[[str, str], bool]


class Truncator:
    def __init__(self, surroundings: TruncationContext, goes_on: CanContinue | None = None) -> None:
        self._around = surroundings
        self._goes_on = goes_on
        self._text = ""  # the lines before the current one
        self._held = ""  # white space and newlines before the current line
        self._line = ""  # the current line so far
        self._num_shown = 0  # characters of it that were shown
        self._is_first_line = True
        # The end of the line that may repeat the rest of the cursor's line.
        self._uncertain = SuffixOverlap(surroundings.rest_of_line)
        self._lines = RecentLines()
        self._num_unopened = 0  # in earlier lines: closed minus opened brackets
        self.has_ended = False
        self.reason: FilterReason | None = None  # None: the engine ended by itself, or not yet

    def feed(self, text: str) -> str:
        """Return the text that can be shown now, possibly empty; always empty after `has_ended`."""
        shown = ""
        for index, part in enumerate(text.split("\n")):
            if index and not self.has_ended:
                shown += self._end_line()
            shown += self._feed_line(part)
        return shown

    def finish(self) -> str:
        """End the completion. Return the held text that belongs to it."""
        if self.has_ended or not self._line.strip():
            return ""
        self.has_ended = True
        if self._is_repeated(self._line.strip()):
            return ""
        line = self._line.rstrip()
        kept = self._without_duplicate(line)
        if kept != line:
            self._end(FilterReason.REPEATS_SUFFIX)
        return self._rest(kept)

    def _end(self, reason: FilterReason) -> None:
        self.has_ended = True
        self.reason = self.reason or reason

    def _feed_line(self, part: str) -> str:
        """Extend the line in steps, so that the result does not depend on the chunks."""
        shown = ""
        while part and not self.has_ended:
            step = CHECK_EVERY - len(self._line) % CHECK_EVERY
            grown, part = part[:step], part[step:]
            spelt, unspelt, _ = grown.partition(_UNSPELT)
            self._line += spelt
            self._uncertain.feed(spelt)
            shown += self._release_text()
            if unspelt and not self.has_ended:
                shown += self.finish()
                self._end(FilterReason.INCOMPLETE_CHARACTER)
            elif len(grown) == step and is_repeating(self._line):
                self._end(FilterReason.REPETITION)
        return shown

    def _release_text(self) -> str:
        content = self._line.strip()
        if not content:
            return ""
        if not self._num_shown and self._is_leaving_block():
            self._end(FilterReason.BLOCK_END)
            return ""
        if self._can_become_repetition(content):
            return ""
        line = self._line.rstrip()
        return self._rest(line[: len(line) - self._uncertain.before_blank].rstrip())

    def _end_line(self) -> str:
        content = self._line.strip()
        if self._around.is_single_line:
            shown = self.finish()
            self._end(FilterReason.LINE_END)
            return shown
        if content and self._is_repeated(content):
            self.has_ended = True
            return ""
        if content:
            self._lines.add(content)
        elif self._around.is_ended_by_blank_line and not self._is_first_line:
            self._end(FilterReason.BLANK_LINE)
        line = self._line.rstrip()
        shown = self._rest(line)
        self._held += self._line[len(line) :] + "\n"
        self._num_unopened += _num_unopened(line)
        self._text += f"{self._line}\n"
        self._line, self._num_shown, self._is_first_line = "", 0, False
        self._uncertain.restart()
        return shown

    def _rest(self, line: str) -> str:
        """Return the part of `line` that was not shown yet, with the held text before it."""
        if len(line) <= self._num_shown:
            return ""
        shown = self._held + line[self._num_shown :]
        self._held, self._num_shown = "", len(line)
        return shown

    def _is_leaving_block(self) -> bool:
        min_indent = self._around.min_indent
        if self._is_first_line or min_indent is None:
            return False
        content = self._line.lstrip()
        indent = len(self._line) - len(content)
        # A closing bracket at the block's own level belongs to the block.
        if indent >= min_indent or (indent == min_indent - 1 and content[0] in _CLOSERS):
            return False
        return self._goes_on is None or not self._goes_on(self._text, self._line)

    def _can_become_repetition(self, content: str) -> bool:
        """Return whether the line, of which nothing was shown, may still become a repetition."""
        if self._num_shown:
            return False
        line, next_line = self._comparable()
        repeats_suffix = self._is_whole_line() and next_line.startswith(line)
        return repeats_suffix or self._lines.can_become_repetition(content)

    def _is_repeated(self, content: str) -> bool:
        if self._is_repeating_suffix():
            self.reason = FilterReason.REPEATS_SUFFIX
        elif self._lines.is_repetition(content):
            self.reason = FilterReason.REPETITION
        return self.reason is not None

    def _is_repeating_suffix(self) -> bool:
        line, next_line = self._comparable()
        return self._is_whole_line() and line == next_line

    def _comparable(self) -> tuple[str, str]:
        """Return the line and the first line of the suffix, in comparable form.

        Indentation counts, to distinguish closing brackets of different blocks. On the cursor's own
        line, the indentation is before the cursor.
        """
        if self._is_first_line:
            return self._line.strip(), self._around.next_line.strip()
        return self._line.rstrip(), self._around.next_line

    def _is_whole_line(self) -> bool:
        return not self._is_first_line or self._around.is_fresh_line

    def _without_duplicate(self, line: str) -> str:
        rest = self._around.rest_of_line
        if not rest or not line.endswith(rest):
            return line
        if set(rest) <= set(_CLOSERS) and self._num_unopened + _num_unopened(line) <= 0:
            return line  # these brackets close those that the completion itself opened
        return line[: len(line) - len(rest)].rstrip()


def _num_unopened(text: str) -> int:
    return sum(text.count(closer) for closer in _CLOSERS) - sum(
        text.count(opener) for opener in _OPENERS
    )
