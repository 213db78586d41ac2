"""A finding about a request: an English sentence, and its parts for translation."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, formatted for people."""

    value: float
    digits: int = 0  # after the decimal point

    def __str__(self) -> str:
        return f"{self.value:,.{self.digits}f}"


class Finding(str):
    """The sentence in English. `wording` and `values` are for its translation."""

    __slots__ = ("values", "wording")

    wording: str  # English, with a field in braces for each of `values`
    values: dict[str, Quantity | str]

    def __new__(cls, wording: str, /, **values: Quantity | str) -> Self:
        finding = super().__new__(cls, wording.format(**values))
        finding.wording, finding.values = wording, values
        return finding
