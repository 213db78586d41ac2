"""The line gate checks whole lines, and decides when text is sent.

    engine > Truncator > LineGate > client

The first line is sent as it grows, so that the first token does not wait for the syntax check. Each
further line is held until it is complete and checked. A line is valid if the file with the
completion up to the end of this line has no more syntax errors than without the completion. An
invalid line is held until a later line makes the file valid again. Lines that are still held at the
end are dropped, so the completion ends with its last valid line.

The completion is withheld in three cases:
- no line was valid;
- the first line, or a line of which a part was sent, contains a secret;
- the text is public code.
Then the finish reason is `filtered`, and clients that show text only at the end show nothing.

Other clients show text before the end. They treat a line as checked when its line break arrives. So
the line break of a valid line is sent as soon as the next line has text, even if that text is
dropped later.

In verbatim mode, for raw prompts and chats, every line is sent as it grows, with all white space.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.filtering.filter_reason import FilterReason

# After more invalid lines in a row than this, no further line is expected to repair the text.
MAX_INVALID_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class LineChecks:
    """The checks; None switches a check off. The comments name the text that each check gets."""

    is_valid: Callable[[str], bool] | None = None  # on the completion up to the end of a line
    # Whether the cursor's block ended before the last line. Called after is_valid, with the same
    # text and the index at which that line begins.
    has_block_ended: Callable[[str, int], bool] | None = None
    # On the current line so far: the index at which a secret may begin; None: nowhere. The first
    # line includes the text before the cursor, here and in contains_secret.
    find_pending_secret: Callable[[str], int | None] | None = None
    contains_secret: Callable[[str], bool] | None = None  # on a whole line
    # On the text since the last call. The check remembers the text before it.
    is_public: Callable[[str], bool] | None = None


class LineGate:
    def __init__(
        self,
        checks: LineChecks,
        *,
        line_before: str,
        is_verbatim: bool = False,
        client_shows_text_early: bool = False,
    ) -> None:
        self._checks = checks
        self._is_verbatim = is_verbatim
        self._client_shows_text_early = client_shows_text_early
        self._line_before = line_before  # the end of the cursor's line before the cursor
        self._text = ""  # all text received before `has_ended`
        self._line_start = 0  # index of the current line in the text
        self._num_sent_chars = 0
        self._num_sendable_chars = 0
        self._num_invalid_lines = 0  # since the last valid line
        self._had_valid_line = False
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
                self._release_growing_line(part)
                self._release_line_break()
            out += self._release_text()
        return out

    def finish(self) -> str:
        """End the completion. Return the held text that belongs to it."""
        if not self.has_ended:
            self._end_line()
            if self._num_invalid_lines:
                self._end(FilterReason.SYNTAX)
            self.has_ended = True
        has_only_invalid_lines = self._num_invalid_lines > 0 and not self._had_valid_line
        self.is_withheld = self.is_withheld or has_only_invalid_lines
        return "" if self.is_withheld else self._release_text()

    def _release_text(self) -> str:
        out = self._text[self._num_sent_chars : self._num_sendable_chars]
        self._num_sent_chars = max(self._num_sent_chars, self._num_sendable_chars)
        return out

    def _end(self, reason: FilterReason) -> None:
        self.has_ended = True
        self.reason = self.reason or reason

    def _release_growing_line(self, part: str) -> None:
        """Withhold public code; otherwise release the first line as it grows, up to a secret.

        In verbatim mode, release every line that way.
        """
        if self._checks.is_public is not None and self._checks.is_public(part):
            self.is_withheld = True
            self._end(FilterReason.PUBLIC_CODE)
        elif self._line_start == 0 or self._is_verbatim:
            find_pending_secret = self._checks.find_pending_secret
            secret_start = find_pending_secret and find_pending_secret(self._checked_line())
            self._num_sendable_chars = (
                len(self._text) if secret_start is None else self._to_completion_index(secret_start)
            )

    def _release_line_break(self) -> None:
        """Release the line break before the current line, if the client shows text early."""
        text_before, text_after = self._text[: self._line_start], self._text[self._line_start :]
        if (
            self._client_shows_text_early
            and (text_before.strip() and text_after.strip())
            and not (self.has_ended or self._num_invalid_lines)
        ):
            self._num_sendable_chars = max(self._num_sendable_chars, self._line_start)

    def _to_completion_index(self, index: int) -> int:
        """Convert an index in the checked line to an index in the completion.

        The result is never before the end of the text that can already be sent.
        """
        before = 0 if self._line_start else len(self._line_before)
        return max(self._num_sendable_chars, self._line_start + index - before)

    def _checked_line(self) -> str:
        line = self._text[self._line_start :]
        return line if self._line_start else self._line_before + line

    def _end_line(self) -> None:
        if self._checks.contains_secret is not None and self._checks.contains_secret(
            self._checked_line()
        ):
            self.is_withheld = self._line_start == 0 or self._num_sent_chars > self._line_start
            self._end(FilterReason.SECRET)
        elif self._checks.is_valid is None or self._checks.is_valid(self._text):
            self._accept_line()
        else:
            self._num_invalid_lines += 1
            if self._num_invalid_lines > MAX_INVALID_LINES:
                self._end(FilterReason.SYNTAX)

    def _accept_line(self) -> None:
        has_block_ended = self._checks.has_block_ended
        if self._line_start and has_block_ended and has_block_ended(self._text, self._line_start):
            self._num_invalid_lines = 0
            self._end(FilterReason.BLOCK_END)
            return
        self._had_valid_line = True
        self._num_invalid_lines = 0
        # Blank lines are sent together with the text after them.
        visible_text = self._text if self._is_verbatim else self._text.rstrip()
        self._num_sendable_chars = max(self._num_sendable_chars, len(visible_text))
