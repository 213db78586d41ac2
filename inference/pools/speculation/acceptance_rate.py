"""How much of what engines draft is accepted, by language: an estimate. Pure.

An engine counts drafted and accepted tokens for all its requests together. So both are regressed on
what each kind of request has generated there; in each window of time

    drafted  = sum over kinds of d * generated + noise
    accepted = sum over kinds of a * generated + noise

by least squares, windows weighted by 1 / generated (counts vary with their size) and old ones less
than new ones. The acceptance of a kind is a / d; whether it is below MIN_ACCEPTANCE is tested on
a - MIN_ACCEPTANCE * d, two standard errors away from 0.

What it cannot tell: kinds that always come in the same mixture, and kinds that are rare. Of those
nothing is said, and nothing is done about them.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NewType

Kind = NewType("Kind", str)  # of requests: a pool and a language
Matrix = list[list[float]]

MIN_ACCEPTANCE: Final = 0.5  # below it drafting costs more than it saves
MIN_TOKENS: Final = 1_000.0  # generated, faded ones counted by what is left of them
HALF_LIFE_S: Final = 1_800.0  # what was below is tried again after a while: its windows fade
_MAX_KINDS: Final = 12  # the rest is one kind; the equations take a millisecond
_MIN_WINDOWS_BEYOND: Final = 10  # more than there are kinds
_STANDARD_ERRORS: Final = 2.0
_SINGULAR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class AcceptanceEstimate:
    acceptance: float | None  # 0 to 1; None: next to nothing is drafted
    is_low: bool  # below MIN_ACCEPTANCE, and surely so
    num_tokens: float  # generated, faded


@dataclass(frozen=True, slots=True)
class AcceptanceWindow:
    """What one engine did between two looks at its counters."""

    generated: Mapping[Kind, int]  # not empty, each more than 0
    drafted: float
    accepted: float


class AcceptanceRates:
    """Of one group of engines, which serve the same kinds."""

    def __init__(self) -> None:
        self._squares: dict[Kind, dict[Kind, float]] = defaultdict(lambda: defaultdict(float))
        self._drafted: dict[Kind, float] = defaultdict(float)
        self._accepted: dict[Kind, float] = defaultdict(float)
        self._num_tokens: dict[Kind, float] = defaultdict(float)
        self._excess_squares = 0.0  # of what was accepted beyond MIN_ACCEPTANCE
        self._num_windows = 0.0

    def decay(self, passed_s: float) -> None:
        left = 0.5 ** (passed_s / HALF_LIFE_S)
        for row in self._squares.values():
            for kind in row:
                row[kind] *= left
        for sums in (self._drafted, self._accepted, self._num_tokens):
            for kind in sums:
                sums[kind] *= left
        self._excess_squares *= left
        self._num_windows *= left

    def add(self, window: AcceptanceWindow) -> None:
        total = sum(window.generated.values())
        for kind, tokens in window.generated.items():
            for other, others_tokens in window.generated.items():
                self._squares[kind][other] += tokens * others_tokens / total
            self._drafted[kind] += tokens * window.drafted / total
            self._accepted[kind] += tokens * window.accepted / total
            self._num_tokens[kind] += tokens
        excess = window.accepted - MIN_ACCEPTANCE * window.drafted
        self._excess_squares += excess * excess / total
        self._num_windows += 1

    def estimates(self) -> dict[Kind, AcceptanceEstimate]:
        """Of the kinds of which something can be said."""
        groups = self._groups()
        if self._num_windows < len(groups) + _MIN_WINDOWS_BEYOND:
            return {}
        inverse = _inverse([[self._joint(row, column) for column in groups] for row in groups])
        if inverse is None:
            return {}
        drafted = _times(inverse, [_sum(self._drafted, group) for group in groups])
        accepted = _times(inverse, [_sum(self._accepted, group) for group in groups])
        excess = [a - MIN_ACCEPTANCE * d for a, d in zip(accepted, drafted, strict=True)]
        variance = self._variance(groups, excess)
        return {
            group[0]: AcceptanceEstimate(
                acceptance=_ratio(accepted[n], drafted[n]),
                is_low=excess[n] + _STANDARD_ERRORS * math.sqrt(variance * inverse[n][n]) < 0,
                num_tokens=self._num_tokens[group[0]],
            )
            for n, group in enumerate(groups)
            if len(group) == 1 and self._num_tokens[group[0]] >= MIN_TOKENS
        }

    def _groups(self) -> list[list[Kind]]:
        """Each frequent kind by itself, the others together."""
        frequent = [kind for kind, tokens in self._num_tokens.items() if tokens >= MIN_TOKENS]
        frequent = sorted(frequent, key=lambda kind: -self._num_tokens[kind])[:_MAX_KINDS]
        others = [kind for kind in self._num_tokens if kind not in frequent]
        singles = [[kind] for kind in frequent]
        return [*singles, others] if others and self._joint(others, others) else singles

    def _joint(self, rows: Sequence[Kind], columns: Sequence[Kind]) -> float:
        return sum(self._squares[row].get(column, 0.0) for row in rows for column in columns)

    def _variance(self, groups: Sequence[Sequence[Kind]], excess: Sequence[float]) -> float:
        """Of the noise, by what the equations leave unexplained."""
        explained = sum(
            (_sum(self._accepted, group) - MIN_ACCEPTANCE * _sum(self._drafted, group)) * value
            for group, value in zip(groups, excess, strict=True)
        )
        return max(0.0, self._excess_squares - explained) / (self._num_windows - len(groups))


def _sum(sums: Mapping[Kind, float], group: Sequence[Kind]) -> float:
    return sum(sums[kind] for kind in group)


def _ratio(accepted: float, drafted: float) -> float | None:
    if drafted <= _SINGULAR:
        return None
    return min(1.0, max(0.0, accepted / drafted))


def _times(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _inverse(matrix: Matrix) -> Matrix | None:
    """By Gauss and Jordan. None: kinds that cannot be told apart."""
    size = len(matrix)
    rows = [[*row, *(float(n == m) for m in range(size))] for n, row in enumerate(matrix)]
    largest = max((abs(matrix[n][n]) for n in range(size)), default=0.0)
    for n in range(size):
        pivot = max(range(n, size), key=lambda m: abs(rows[m][n]))
        if abs(rows[pivot][n]) <= _SINGULAR * largest:
            return None
        rows[n], rows[pivot] = rows[pivot], rows[n]
        rows[n] = [value / rows[n][n] for value in rows[n]]
        for m in range(size):
            if m != n:
                factor = rows[m][n]
                rows[m] = [a - factor * b for a, b in zip(rows[m], rows[n], strict=True)]
    return [row[size:] for row in rows]
