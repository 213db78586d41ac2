"""Decides where a completion ends. Pure: generated text in, text to show out.

A line is shown as it grows, but its beginning is held until it certainly belongs to the completion:
text that was shown is never revoked. A completion ends
- with the line, if the request is for a single line;
- before a line that leaves the block of the cursor;
- before a line that repeats the first line of the suffix;
- before a line, or the first of up to four lines, that would occur a third time in a row;
- where a line becomes repetitive;
- before a character that could not be decoded (U+FFFD), usually an incomplete one.

White space is held, and so is a repetition of the rest of the cursor's line. Both are dropped at
the end of the completion.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import CompletionRequest
from inference.context.prompt.cursor_text import line_after, line_before
from inference.filtering.filter_reason import FilterReason

# A line is checked each time it has grown by this many characters, to keep the cost low.
CHECK_EVERY: Final = 16
_UNIT_CHARS: Final = range(3, 33)
_MIN_ROUNDS: Final = 5
_MIN_CHARS: Final = 40  # of all repetitions: `None, None, None, None, None` is ordinary code
_MAX_LINES: Final = 4


def is_repeating(line: str) -> bool:
    """Return whether the line ends with repetitions of a text that contains letters."""
    return len(line) >= _MIN_CHARS and any(_ends_with_rounds(line, size) for size in _UNIT_CHARS)


def _ends_with_rounds(line: str, size: int) -> bool:
    unit = line[-size:]
    if line[-2 * size : -size] != unit or not any(map(str.isalpha, unit)):
        return False
    num_rounds = max(_MIN_ROUNDS, -(-_MIN_CHARS // size))
    return line.endswith(unit * num_rounds)


class RecentLines:
    """The latest lines of a completion, without blank ones."""

    def __init__(self) -> None:
        self._last: list[str] = []  # stripped; twice the longest repeated sequence
        self._worn: frozenset[str] = frozenset()  # lines that would start a third repetition

    def add(self, line: str) -> None:
        self._last = [*self._last[1 - 2 * _MAX_LINES :], line]
        self._worn = frozenset(
            self._last[-size]
            for size in range(1, _MAX_LINES + 1)
            if len(self._last) >= 2 * size and self._last[-size:] == self._last[-2 * size : -size]
        )

    def is_repetition(self, line: str) -> bool:
        return line in self._worn

    def can_become_repetition(self, beginning: str) -> bool:
        return any(line.startswith(beginning) for line in self._worn)


_TEXT: Final = re.compile(r"\S")


def _first_line_of_text(text: str, start: int) -> str:
    """Return the first non-blank line from `start` on."""
    found = _TEXT.search(text, start)
    if found is None:
        return ""
    start = max(start, text.rfind("\n", 0, found.start()) + 1)
    end = text.find("\n", found.start())
    return text[start : end if end >= 0 else len(text)].rstrip()


def _min_indent(mode: Mode, line_before: str, *, is_fresh_line: bool) -> int | None:
    """Return the block's minimum indentation.

    On an empty line the block is that of the cursor; otherwise the line itself opens it.
    """
    if mode is Mode.FIM:  # the client decides where the completion ends
        return None
    if is_fresh_line:
        return len(line_before)
    return len(line_before) - len(line_before.lstrip()) + 1


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


# Returns whether a line continues the block despite its indentation. Arguments: the text before
# the line, the line.
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
        return self._take_unshown(kept)

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
        return self._take_unshown(line[: len(line) - self._uncertain.before_blank].rstrip())

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
        shown = self._take_unshown(line)
        self._held += self._line[len(line) :] + "\n"
        self._num_unopened += _num_unopened(line)
        self._text += f"{self._line}\n"
        self._line, self._num_shown, self._is_first_line = "", 0, False
        self._uncertain.restart()
        return shown

    def _take_unshown(self, line: str) -> str:
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
        line, next_line = self._comparable_texts()
        repeats_suffix = self._is_whole_line() and next_line.startswith(line)
        return repeats_suffix or self._lines.can_become_repetition(content)

    def _is_repeated(self, content: str) -> bool:
        if self._is_repeating_suffix():
            self.reason = FilterReason.REPEATS_SUFFIX
        elif self._lines.is_repetition(content):
            self.reason = FilterReason.REPETITION
        return self.reason is not None

    def _is_repeating_suffix(self) -> bool:
        line, next_line = self._comparable_texts()
        return self._is_whole_line() and line == next_line

    def _comparable_texts(self) -> tuple[str, str]:
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


class SuffixOverlap:
    """Finds the longest beginning of a text that a growing text ends with (Knuth-Morris-Pratt)."""

    def __init__(self, text: str) -> None:
        self._text = text
        # For each beginning of the text, the length of its longest end that is also a beginning.
        # Computed on demand: the text may be half a megabyte, while the growing text is a line.
        self._shorter: list[int] = [0]
        self._length = 0  # of the longest beginning that ends the growing text
        self.before_blank = 0  # the same, without trailing white space of the growing text

    def feed(self, part: str) -> None:
        for letter in part if self._text else "":
            self._length = self._next_length(self._length, letter)
            if not letter.isspace():
                self.before_blank = self._length

    def restart(self) -> None:
        """Start with a new growing text."""
        self._length = self.before_blank = 0

    def _next_length(self, length: int, letter: str) -> int:
        while length == len(self._text) or self._text[length] != letter:
            if not length:
                return 0
            length = self._shorter_than(length)
        return length + 1

    def _shorter_than(self, length: int) -> int:
        while len(self._shorter) < length:
            place = len(self._shorter)
            self._shorter.append(self._next_length(self._shorter[-1], self._text[place]))
        return self._shorter[length - 1]


def build_truncation_context(
    request: CompletionRequest, *, is_single_line: bool
) -> TruncationContext:
    before, rest = line_before(request.prefix), line_after(request.suffix)
    is_fresh_line = not before.strip()
    return TruncationContext(
        is_single_line=is_single_line,
        is_fresh_line=is_fresh_line,
        min_indent=_min_indent(request.mode, before, is_fresh_line=is_fresh_line),
        is_ended_by_blank_line=request.mode is Mode.INLINE,
        rest_of_line=rest.strip(),
        next_line=_first_line_of_text(request.suffix, len(rest) + 1),
    )
