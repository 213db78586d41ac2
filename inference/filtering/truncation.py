"""Where a completion ends. Pure: text in, text that may be shown out.

A line is shown as it grows, but its beginning is held back until it is clear that it belongs to the
completion; so what was shown is never taken back. It ends
- with the line, where the request is for a single line;
- before a line that leaves the block in which the cursor stands;
- before a line that repeats the first line of the suffix;
- before a line, or the first of up to four lines, that comes for the third time in a row;
- where a line goes round in circles;
- before a character that the engine could not spell (U+FFFD): half of one, as a rule.
Held back at the end and dropped: white space, and what the rest of the cursor's line already says.
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
    """What a cutter knows of the text around the cursor."""

    is_single_line: bool
    is_fresh_line: bool  # nothing but white space before the cursor on its line
    # Columns; a line indented less than this leaves the block. None: no block to leave.
    min_indent: int | None
    is_ended_by_blank_line: bool
    rest_of_line: str  # what follows the cursor on its line, stripped
    # The first line of text after the cursor's, with its indentation; "" when there is none.
    next_line: str


# Whether a line goes on with the block whatever its indentation: of the text before it and itself.
CanContinue = Callable[[str, str], bool]


class Truncator:
    def __init__(self, surroundings: TruncationContext, goes_on: CanContinue | None = None) -> None:
        self._around = surroundings
        self._goes_on = goes_on
        self._text = ""  # the lines before this one
        self._held = ""  # white space and newlines before the current line
        self._line = ""  # the current line so far
        self._num_shown = 0  # characters of it that were shown
        self._is_first_line = True
        # What of the line's end may turn out to be the rest of the cursor's line.
        self._uncertain = SuffixOverlap(surroundings.rest_of_line)
        self._lines = RecentLines()
        self._num_unopened = 0  # of the lines before: brackets closed less brackets opened
        self.has_ended = False
        self.reason: FilterReason | None = None  # None: the engine has ended by itself, or not yet

    def feed(self, text: str) -> str:
        """What may be shown now, perhaps nothing; after `has_ended` nothing more."""
        shown = ""
        for index, part in enumerate(text.split("\n")):
            if index and not self.has_ended:
                shown += self._end_line()
            shown += self._feed_line(part)
        return shown

    def finish(self) -> str:
        """The engine has ended: what of the text held back belongs to the completion."""
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
        """The line goes on; in steps, so that it ends at the same place however it comes."""
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
        """The part of `line` that was not shown yet, after what was held before it."""
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
        # A closing bracket at the block's own level still belongs to it.
        if indent >= min_indent or (indent == min_indent - 1 and content[0] in _CLOSERS):
            return False
        return self._goes_on is None or not self._goes_on(self._text, self._line)

    def _can_become_repetition(self, content: str) -> bool:
        """Whether the line, of which nothing was shown, may become one that is to be dropped."""
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
        """The line and the suffix's first. Indentation counts: an inner closer is not the outer
        one. That of the cursor's own line stands before the cursor."""
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
            return line  # these brackets close what the completion itself has opened
        return line[: len(line) - len(rest)].rstrip()


def _num_unopened(text: str) -> int:
    return sum(text.count(closer) for closer in _CLOSERS) - sum(
        text.count(opener) for opener in _OPENERS
    )
