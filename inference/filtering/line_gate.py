"""What of the cut text goes out, and when: the checks that need a whole line.

    engine > Cutter > Gate > client

The first line goes out as it comes: the first token is not to wait for anybody's judgement. Each
further line is held until it is whole and the checks have seen it; while the file would be more
broken with it, it stays held, until a later line mends it or the completion ends. What is held then
is dropped: the completion ends at the last good point.

Where no point was ever good but the first line has gone out, where that line holds a credential, or
where the text is public code, the completion is withheld: the end says so, and a client that shows
text only when it has ended shows none.

Verbatim, for raw prompts and chats: each line goes out as it comes, as the first one does, and with
it all white space.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.filtering.filter_reason import FilterReason

# So many lines without a good point are not mended by one more.
MAX_INVALID_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class LineChecks:
    """None: not asked for. Each gets the completion so far, or its last line."""

    is_valid: Callable[[str], bool] | None = None  # of all text up to the end of a line
    # Whether the cursor's block has ended before the last line; asked after is_valid, of the text
    # and the place where that line begins.
    has_block_ended: Callable[[str, int], bool] | None = None
    # From which character of a line on it may become a credential, and whether it has one. A line
    # comes with what stands before the cursor on it.
    find_pending_secret: Callable[[str], int | None] | None = None
    contains_secret: Callable[[str], bool] | None = None
    is_public: Callable[[str], bool] | None = None  # of what has come since it was last asked


class LineGate:
    def __init__(self, checks: LineChecks, *, line_before: str, is_verbatim: bool = False) -> None:
        self._checks = checks
        self._is_verbatim = is_verbatim
        self._line_before = line_before  # what stands before the cursor on its line
        self._text = ""  # all that came
        self._line_start = 0  # of the line under way
        self._num_sent = 0
        self._num_good = 0  # up to here it may go out
        self._num_unsound = 0  # lines since the last good point
        self._is_ever_sound = False
        self.has_ended = False
        self.is_withheld = False
        self.reason: FilterReason | None = None

    def feed(self, text: str) -> str:
        """What may go out now, perhaps nothing; after `has_ended` nothing more."""
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
            out += self._release_text()
        return out

    def finish(self) -> str:
        """The completion has ended: what of the text held back belongs to it."""
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
        """The first line, or each one, goes out as it grows, save what may become a credential."""
        if self._checks.is_public is not None and self._checks.is_public(part):
            self.is_withheld = True
            self._end(FilterReason.PUBLIC_CODE)
        elif self._line_start == 0 or self._is_verbatim:
            place = self._checks.find_pending_secret and self._checks.find_pending_secret(
                self._line()
            )
            self._num_good = len(self._text) if place is None else self._locate(place)

    def _locate(self, place: int) -> int:
        """Of the line, the first one with what stands before it, to the completion's."""
        before = 0 if self._line_start else len(self._line_before)
        return max(self._num_good, self._line_start + place - before)

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
        # Blank lines go out with what follows them.
        shown = self._text if self._is_verbatim else self._text.rstrip()
        self._num_good = max(self._num_good, len(shown))

    def _is_never_valid(self) -> bool:
        return self.reason is FilterReason.SYNTAX and not self._is_ever_sound
