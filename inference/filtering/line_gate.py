"""The line gate: checks that need a whole line, and when text is sent.

    engine > Truncator > LineGate > client

The first line is sent as it grows, so that the first token does not wait for checks. Each further
line is held until it is whole and checked. If the file would be more invalid with it, it stays held
until a later line repairs that. Lines still held at the end are dropped: the completion ends at the
last good point.

The completion is withheld if no point was good but the first line was sent, if a line that was sent
contains a secret, or if the text is public code. The finish reason says so, and clients that show
text only at the end show nothing.

Clients that show text before the end need to know when the first line has passed. For them, the
line break after a good line is sent as soon as the next line has text. It may be the last text.

In verbatim mode, for raw prompts and chats, every line is sent as it grows, with all white space.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.filtering.filter_reason import FilterReason

# After so many lines without a good point, a further line is not expected to repair the text.
MAX_INVALID_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class LineChecks:
    """The checks; None: not required. Each gets the completion so far, or its last line."""

    is_valid: Callable[[str], bool] | None = None  # on all text up to the end of a line
    # Whether the cursor's block ended before the last line. Called after is_valid, with the text
    # and the index at which that line begins.
    has_block_ended: Callable[[str, int], bool] | None = None
    # The index in a line at which a secret may begin, and whether the line contains one. The first
    # line includes the text before the cursor.
    find_pending_secret: Callable[[str], int | None] | None = None
    contains_secret: Callable[[str], bool] | None = None
    is_public: Callable[[str], bool] | None = None  # on the text since the last call


class LineGate:
    def __init__(
        self,
        checks: LineChecks,
        *,
        line_before: str,
        is_verbatim: bool = False,
        shows_passed_lines: bool = False,
    ) -> None:
        self._checks = checks
        self._is_verbatim = is_verbatim
        self._shows_passed_lines = shows_passed_lines
        self._line_before = line_before  # the part of the cursor's line before the cursor
        self._text = ""  # everything received
        self._line_start = 0  # index of the current line
        self._num_sent = 0
        self._num_good = 0  # text up to here may be sent
        self._num_unsound = 0  # lines since the last good point
        self._is_ever_sound = False
        self.has_ended = False
        self.is_withheld = False
        self.reason: FilterReason | None = None

    def feed(self, text: str) -> str:
        """Return the text that can be sent now, possibly empty; always empty after `has_ended`."""
        if not text:
            return ""
        out = ""
        for index, part in enumerate(text.split("\n")):
            if index and not self.has_ended:
                self._end_line()
                self._text += "\n"
                self._line_start = len(self._text)
            if not self.has_ended:
                self._text += part
                self._look_ahead(part)
                self._pass_line_break()
            out += self._release_text()
        return out

    def finish(self) -> str:
        """End the completion. Return the held text that belongs to it."""
        if not self.has_ended:
            self._end_line()
            if self._num_unsound:
                self._end(FilterReason.SYNTAX)
            self.has_ended = True
        self.is_withheld = self.is_withheld or self._is_never_valid()
        return "" if self.is_withheld else self._release_text()

    def _release_text(self) -> str:
        out = self._text[self._num_sent : self._num_good]
        self._num_sent = max(self._num_sent, self._num_good)
        return out

    def _end(self, reason: FilterReason) -> None:
        self.has_ended = True
        self.reason = self.reason or reason

    def _look_ahead(self, part: str) -> None:
        """Release the current line as it grows, except a possible secret.

        This applies to the first line, and to every line in verbatim mode.
        """
        if self._checks.is_public is not None and self._checks.is_public(part):
            self.is_withheld = True
            self._end(FilterReason.PUBLIC_CODE)
        elif self._line_start == 0 or self._is_verbatim:
            secret_start = self._checks.find_pending_secret and self._checks.find_pending_secret(
                self._line()
            )
            self._num_good = (
                len(self._text) if secret_start is None else self._to_completion_index(secret_start)
            )

    def _pass_line_break(self) -> None:
        is_begun = self._text[self._line_start :].strip() and self._text[: self._line_start].strip()
        if self._shows_passed_lines and is_begun and not (self.has_ended or self._num_unsound):
            self._num_good = max(self._num_good, self._line_start)

    def _to_completion_index(self, index: int) -> int:
        """Convert an index in the checked line to an index in the completion."""
        before = 0 if self._line_start else len(self._line_before)
        return max(self._num_good, self._line_start + index - before)

    def _line(self) -> str:
        line = self._text[self._line_start :]
        return line if self._line_start else self._line_before + line

    def _end_line(self) -> None:
        if self._checks.contains_secret is not None and self._checks.contains_secret(self._line()):
            self.is_withheld = self._line_start == 0 or self._num_sent > self._line_start
            self._end(FilterReason.SECRET)
        elif self._checks.is_valid is None or self._checks.is_valid(self._text):
            self._accept_line()
        else:
            self._num_unsound += 1
            if self._num_unsound > MAX_INVALID_LINES:
                self._end(FilterReason.SYNTAX)

    def _accept_line(self) -> None:
        ends_before = self._checks.has_block_ended
        if self._line_start and ends_before and ends_before(self._text, self._line_start):
            self._num_unsound = 0
            self._end(FilterReason.BLOCK_END)
            return
        self._is_ever_sound = True
        self._num_unsound = 0
        # Blank lines are sent together with the text after them.
        visible_text = self._text if self._is_verbatim else self._text.rstrip()
        self._num_good = max(self._num_good, len(visible_text))

    def _is_never_valid(self) -> bool:
        return self.reason is FilterReason.SYNTAX and not self._is_ever_sound
