"""Input and result of the mode `edit`: recent edits and diagnostics, and the proposed edit.

Lines are counted from 0.
"""

from dataclasses import dataclass
from enum import StrEnum


class DiagnosticSeverity(StrEnum):
    """The severities of the Language Server Protocol."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """A change that the user made in a file: `added` replaced `removed`."""

    path: str  # of the changed file
    start_line: int  # the first changed line of the file
    removed: str  # the lines before the change
    added: str  # the lines after the change


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of the editor's language tools about the file."""

    line: int  # from the first line of the prefix that the client sent
    severity: DiagnosticSeverity
    message: str


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """An edit that replaces lines with `text`.

    If `start_line` equals `end_line`, `text` is inserted before this line. The lines are counted
    from the first line of the prefix that the client sent.
    """

    start_line: int  # the first line to replace
    end_line: int  # the line after the last one to replace
    text: str  # whole lines; only the last line of the file may lack its line break
    # The number of inserted or of removed characters, whichever is larger. At least 1.
    num_changed_chars: int
