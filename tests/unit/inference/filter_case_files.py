"""Reads `filter_cases/*.txt`: what a person wants of a model's output at a cursor.

    § title, or title [block] for that mode
    the file, with the cursor at ▮
    ⇒
    the model's output, with the end of the wanted text at ‖

The file's name is the language. A line break before the next title belongs to no text.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.contracts.policy import Mode

_FOLDER: Final = Path(__file__).parent / "filter_cases"


@dataclass(frozen=True, slots=True)
class FilterCase:
    language: str
    title: str
    mode: Mode
    prefix: str
    suffix: str
    output: str
    wanted: str

    @property
    def name(self) -> str:
        return f"{self.language}: {self.title}"


def read_cases() -> list[FilterCase]:
    return [
        _parse_case(path.stem, text)
        for path in sorted(_FOLDER.glob("*.txt"))
        for text in path.read_text(encoding="utf-8").removeprefix("§ ").split("\n§ ")
    ]


def _parse_case(language: str, text: str) -> FilterCase:
    title, _, rest = text.partition("\n")
    around, separator, output = rest.partition("\n⇒\n")
    prefix, cursor, suffix = around.partition("▮")
    wanted, end, further = output.partition("‖")
    if not (separator and cursor and end):
        raise ValueError(f"{language}: {title}: ⇒, ▮ or ‖ is missing.")
    mode = Mode.BLOCK if title.endswith("[block]") else Mode.INLINE
    return FilterCase(language, title, mode, prefix, suffix, wanted + further, wanted.rstrip())
