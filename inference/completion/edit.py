"""The input and the result of the mode `edit`: what the user did, and what they may do next.

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
    """A change that the user made: at `start_line`, `added` replaced `removed`."""

    path: str
    start_line: int  # in that file
    removed: str
    added: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of the editor's language tools about the file."""

    line: int  # from the first line of the prefix that the client sent
    severity: DiagnosticSeverity
    message: str


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """Replaces the lines from `start_line` up to, but without, `end_line` with `text`.

    If both numbers are equal, `text` is inserted before that line. The lines are counted from the
    first line of the prefix that the client sent.
    """

    start_line: int
    end_line: int
    text: str  # whole lines; only the last line of the file may lack its line break
    num_changed_chars: int  # inserted or removed characters, whichever are more; at least 1
