"""Where a completion ends. Pure: text in, text that may be shown out.

A line is shown as it grows, but its beginning is held back until it is clear that it belongs to the
completion; so what was shown is never taken back. It ends
- with the line, where the request is for a single line;
- before a line that leaves the block in which the cursor stands;
- before a line that repeats the first line of the suffix;
- before a line that comes for the third time in a row.
Held back at the end and dropped: white space, and what the rest of the cursor's line already says.
"""

from dataclasses import dataclass
from typing import Final

_CLOSERS: Final = ")]}"
_OPENERS: Final = "([{"
_MAX_REPEATS: Final = 2


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a cutter knows of the text around the cursor."""

    is_single_line: bool
    is_fresh_line: bool  # nothing but white space before the cursor on its line
    # Columns; a line indented less than this leaves the block. None: no block to leave.
    min_indent: int | None
    ends_at_blank_line: bool
    rest_of_line: str  # what follows the cursor on its line, stripped
    # The first line of text after the cursor's, with its indentation; "" when there is none.
    next_line: str


class Cutter:
    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._held = ""  # white space and newlines before the current line
        self._line = ""  # the current line so far
        self._num_shown = 0  # characters of it that were shown
        self._is_first_line = True
        self._previous = ""  # the line before, stripped
        self._num_repeats = 0
        self._num_unopened = 0  # of the lines before: brackets closed less brackets opened
        self.has_ended = False

    def feed(self, text: str) -> str:
        """What may be shown now, perhaps nothing; after `has_ended` nothing more."""
        shown = ""
        for index, part in enumerate(text.split("\n")):
            if self.has_ended:
                break
            if index:
                shown += self._end_line()
            if not self.has_ended:
                self._line += part
                shown += self._show()
        return shown

    def finish(self) -> str:
        """The engine has ended: what of the text held back belongs to the completion."""
        if self.has_ended or not self._line.strip():
            return ""
        self.has_ended = True
        if self._repeats_suffix() or self._repeats_once_more(self._line.strip()):
            return ""
        return self._rest(self._without_duplicate(self._line.rstrip()))

    def _show(self) -> str:
        content = self._line.strip()
        if not content:
            return ""
        if not self._num_shown and self._leaves_block():
            self.has_ended = True
            return ""
        if self._may_repeat(content):
            return ""
        line = self._line.rstrip()
        return self._rest(line[: len(line) - self._num_uncertain(line)].rstrip())

    def _end_line(self) -> str:
        content = self._line.strip()
        if self._around.is_single_line:
            shown = self.finish()
            self.has_ended = True
            return shown
        if content and (self._repeats_suffix() or self._repeats_once_more(content)):
            self.has_ended = True
            return ""
        if content:
            self._num_repeats = self._num_repeats + 1 if content == self._previous else 0
            self._previous = content
        if not content:
            self.has_ended = self._around.ends_at_blank_line and not self._is_first_line
        line = self._line.rstrip()
        shown = self._rest(line)
        self._held += self._line[len(line) :] + "\n"
        self._num_unopened += _num_unopened(line)
        self._line, self._num_shown, self._is_first_line = "", 0, False
        return shown

    def _rest(self, line: str) -> str:
        """The part of `line` that was not shown yet, after what was held before it."""
        if len(line) <= self._num_shown:
            return ""
        shown = self._held + line[self._num_shown :]
        self._held, self._num_shown = "", len(line)
        return shown

    def _leaves_block(self) -> bool:
        min_indent = self._around.min_indent
        if self._is_first_line or min_indent is None:
            return False
        content = self._line.lstrip()
        indent = len(self._line) - len(content)
        # A closing bracket at the block's own level still belongs to it.
        return indent < min_indent and not (indent == min_indent - 1 and content[0] in _CLOSERS)

    def _may_repeat(self, content: str) -> bool:
        """Whether the line, of which nothing was shown, may become one that is to be dropped."""
        if self._num_shown:
            return False
        line, next_line = self._comparable()
        repeats_suffix = self._is_whole_line() and next_line.startswith(line)
        return repeats_suffix or (self._is_worn_out() and self._previous.startswith(content))

    def _repeats_suffix(self) -> bool:
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

    def _is_worn_out(self) -> bool:
        """The line before came twice: a third time would be one too many."""
        return self._num_repeats >= _MAX_REPEATS - 1

    def _repeats_once_more(self, content: str) -> bool:
        return self._is_worn_out() and content == self._previous

    def _num_uncertain(self, line: str) -> int:
        """How many characters at the end may turn out to be the rest of the cursor's line."""
        rest = self._around.rest_of_line
        for length in range(min(len(rest), len(line)), 0, -1):
            if line.endswith(rest[:length]):
                return length
        return 0

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
