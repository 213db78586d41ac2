"""What was spent over time, as columns: numbers for a picture that templates draw. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

WIDTH: Final = 1_000  # stretched to its place
HEIGHT: Final = 160


@dataclass(frozen=True, slots=True)
class Spent:
    """Of a day or a month."""

    begins_on: date
    seats_micros: int
    fast_micros: int
    quality_micros: int

    @property
    def micros(self) -> int:
        return self.seats_micros + self.fast_micros + self.quality_micros

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.seats_micros, self.fast_micros, self.quality_micros


@dataclass(frozen=True, slots=True)
class Part:
    kind: int  # from 1: seats, fast, quality
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Column:
    spent: Spent
    x: int
    width: int
    parts: tuple[Part, ...]


def columns(spent: Sequence[Spent]) -> tuple[Column, ...]:
    """Oldest first, scaled to the dearest; the space between them is a fifth of their width."""
    most = max((each.micros for each in spent), default=0)
    num = max(len(spent), 1)
    found = []
    for place, each in enumerate(spent):
        x, until = WIDTH * place // num, WIDTH * (place + 1) // num
        found.append(Column(each, x, max(1, (until - x) * 4 // 5), _parts(each, most)))
    return tuple(found)


def _parts(spent: Spent, most: int) -> tuple[Part, ...]:
    """On top of each other. What is there is seen, however little it is."""
    found, ground = [], HEIGHT
    for kind, micros in enumerate(spent.parts, 1):
        if micros <= 0:
            continue
        height = min(ground, max(1, HEIGHT * micros // most))
        ground -= height
        found.append(Part(kind, ground, height))
    return tuple(found)
