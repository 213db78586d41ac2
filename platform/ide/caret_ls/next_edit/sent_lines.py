"""Maps lines of a file to the lines that were sent with a request, and back. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from caret_ls.completion_context import CompletionContext
from caret_ls.text_document import Position, split_lines, utf16_length

MAX_DIAGNOSTICS: Final = 16  # of a request; the gateway's limit
MAX_MESSAGE_CHARS: Final = 500  # of a diagnostic; the gateway's limit
SEVERITIES: Final = ("error", "warning", "information", "hint")
_LINE_ENDS: Final = ("\n", "\r")


@dataclass(frozen=True, slots=True)
class EditorDiagnostic:
    """A message of the editor's language tools about a line."""

    line: int  # from 0
    severity: str  # one of SEVERITIES; others are not sent
    message: str

    def to_fields(self) -> dict[str, Any]:
        return {"line": self.line, "severity": self.severity, "message": self.message}


@dataclass(frozen=True, slots=True)
class LineEdit:
    """An edit of a file that replaces the text between two positions."""

    start: Position  # the start of a line, or the end of the file
    end: Position  # the start of a line, or the end of the file
    old_text: str  # the text between the positions
    new_text: str


@dataclass(frozen=True, slots=True)
class SentLines:
    """The lines of a file that were sent. The first and last lines of a long file are left out.

    Lines count from 0. The text after the last line end is a line, too, even if it is empty.
    """

    file_lines: Sequence[str]  # all lines of the file, with their ends
    first: int  # the first line that was sent
    cursor: int  # the line of the cursor, which was sent
    count: int  # number of lines that were sent

    def select_diagnostics(self, diagnostics: Iterable[EditorDiagnostic]) -> list[EditorDiagnostic]:
        """Return the diagnostics of sent lines, the nearest to the cursor first.

        In the result, the first sent line is line 0.
        """
        near = sorted(
            (diagnostic for diagnostic in diagnostics if self._is_sendable(diagnostic)),
            key=lambda diagnostic: abs(diagnostic.line - self.cursor),
        )
        return [
            replace(
                diagnostic,
                line=diagnostic.line - self.first,
                message=diagnostic.message[:MAX_MESSAGE_CHARS],
            )
            for diagnostic in near[:MAX_DIAGNOSTICS]
        ]

    def to_file_edit(self, start_line: int, end_line: int, text: str) -> LineEdit | None:
        """Return the edit of the file that replaces sent lines by `text`.

        The replaced lines are `start_line` and those after it, without `end_line`; the first sent
        line is line 0. Equal lines at the start and end of old and new text are not part of the
        edit. None: the lines were not sent, or nothing changes.
        """
        is_range = 0 <= start_line <= end_line <= self.count
        if not is_range or start_line == self.count:
            return None
        start, end = self.first + start_line, self.first + end_line
        is_at_end = end == len(self.file_lines)
        new_lines = _split(self._with_file_line_ends(text))
        # Unless it is the last line of the file, the last new line needs a line end. If `text` has
        # one at its end, `_split` has added an empty line.
        if new_lines[-1] == "" and not is_at_end:
            del new_lines[-1]
        elif not is_at_end:
            new_lines[-1] += self._line_end
        return self._trim(start, list(self.file_lines[start:end]), new_lines)

    def _is_sendable(self, diagnostic: EditorDiagnostic) -> bool:
        is_line_sent = self.first <= diagnostic.line < self.first + self.count
        return (
            is_line_sent and diagnostic.severity in SEVERITIES and diagnostic.message.strip() != ""
        )

    def _trim(self, start: int, old_lines: list[str], new_lines: list[str]) -> LineEdit | None:
        while old_lines and new_lines and old_lines[0] == new_lines[0]:
            start += 1
            del old_lines[0], new_lines[0]
        while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
            del old_lines[-1], new_lines[-1]
        if old_lines == new_lines:
            return None
        end = start + len(old_lines)
        return LineEdit(
            self._start_of(start), self._start_of(end), "".join(old_lines), "".join(new_lines)
        )

    @property
    def _line_end(self) -> str:
        """The line end of the file; CRLF if a line has it."""
        return "\r\n" if any(line.endswith("\r\n") for line in self.file_lines) else "\n"

    def _with_file_line_ends(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self._line_end)

    def _start_of(self, line: int) -> Position:
        """Return the start of a line; for the line after the last one, the end of the file."""
        if line == len(self.file_lines):
            return Position(line - 1, utf16_length(self.file_lines[-1]))
        return Position(line, 0)


def find_sent_lines(text: str, position: Position, context: CompletionContext) -> SentLines:
    """Return the lines that the context of a completion at the position contains."""
    file_lines = _split(text)
    cursor = min(max(position.line, 0), len(file_lines) - 1)
    first = cursor - (len(_split(context.prefix)) - 1)
    count = len(_split(context.prefix + context.suffix))
    # The last line of a cut context was not sent: it is empty, or only a part of a long line.
    is_cut = first + count < len(file_lines)
    return SentLines(file_lines, first, cursor, count - 1 if is_cut else count)


def _split(text: str) -> list[str]:
    """Return the lines with their ends; the last one has none, and may be empty."""
    lines = split_lines(text)
    return [*lines, ""] if not lines or lines[-1].endswith(_LINE_ENDS) else lines
