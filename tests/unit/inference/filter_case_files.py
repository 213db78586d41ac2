"""Reads `filter_cases/*.txt`: outputs of models, with the part that the filter should keep.

A file is named after the language of its cases. A case has this form:

    § title
    the customer's file, with the cursor at ▮
    ⇒
    the model's output; an editor should show the text before ‖

A title contains [block] if the completion was requested in block mode. It contains [wrong] if the
filter still fails the case. The line break before the next title is not part of the output.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from caret.contracts.policy import Mode

_FOLDER: Final = Path(__file__).parent / "filter_cases"
_BLOCK: Final = " [block]"
_WRONG: Final = " [wrong]"
_CLOSERS: Final = tuple(")]};")


class CaseKind(StrEnum):
    """The kinds by which the benchmark groups its figures, derived from the expected text."""

    OPENS_BLOCK = "first line opens a block"
    BELOW = "begins with a line break"
    CLOSES = "ends with a closing bracket or semicolon"
    WITHHELD = "nothing to show"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FilterCase:
    language: str
    title: str
    mode: Mode
    is_known_wrong: bool
    prefix: str
    suffix: str
    output: str
    expected: str  # the text to show

    @property
    def name(self) -> str:
        return f"{self.language}: {self.title}"

    @property
    def kind(self) -> CaseKind:
        if not self.expected:
            return CaseKind.WITHHELD
        if self.expected.lstrip(" \t").startswith("\n"):
            return CaseKind.BELOW
        if "\n" in self.expected:
            return CaseKind.OPENS_BLOCK
        return CaseKind.CLOSES if self.expected.endswith(_CLOSERS) else CaseKind.OTHER


def read_cases(folder: Path = _FOLDER) -> list[FilterCase]:
    return [
        _parse_case(path.stem, text)
        for path in sorted(folder.glob("*.txt"))
        for text in path.read_text(encoding="utf-8").removeprefix("§ ").split("\n§ ")
    ]


def _parse_case(language: str, text: str) -> FilterCase:
    title, _, body = text.partition("\n")
    file_text, separator, output = body.partition("\n⇒\n")
    prefix, cursor, suffix = file_text.partition("▮")
    expected, end, dropped = output.partition("‖")
    if not (separator and cursor and end):
        raise ValueError(f"{language}: {title}: ⇒, ▮ or ‖ is missing.")
    return FilterCase(
        language,
        title.replace(_BLOCK, "").replace(_WRONG, ""),
        Mode.BLOCK if _BLOCK in title else Mode.INLINE,
        _WRONG in title,
        prefix,
        suffix,
        expected + dropped,
        expected.rstrip(),
    )
