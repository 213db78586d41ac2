"""Estimates the acceptance rate of speculative decoding, by language. Pure.

An engine counts drafted and accepted tokens for all its requests together. The counts of one kind
of request (a pool and a language) are therefore estimated by a least-squares regression, from the
number of tokens that the engine generated for each kind. In each time window:

    drafted  = sum over kinds of d * generated + noise
    accepted = sum over kinds of a * generated + noise

The drafted and accepted tokens of a kind, per generated token, are d and a. The weight of a window
is 1 / generated tokens, because the variance of counts grows with their size. The weight halves
after each HALF_LIFE_S. The acceptance rate of a kind is a / d. A rate is low if the term
a - MIN_ACCEPTANCE * d is more than two standard errors below 0.

Rare kinds have no estimate. No kind has an estimate while some kinds always come in the same
mixture, because the regression cannot separate them.

A draft has several tokens. The engine also counts the accepted tokens at each position of a draft.
The regression estimates these counts in the same way. They are divided by the number of drafts.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NewType

RequestKind = NewType("RequestKind", str)  # kind of request: a pool and a language
FOREIGN: Final = RequestKind("")  # requests of other gateways, in any pool and language
Matrix = list[list[float]]

MIN_ACCEPTANCE: Final = 0.5  # below this, drafting costs more than it saves
MIN_TOKENS: Final = 1_000.0  # weighted generated tokens; a kind with fewer has no estimate
HALF_LIFE_S: Final = 1_800.0  # of the weight of a window
# Only the most frequent kinds are separate; all others count as one kind. With this number, the
# computation takes a millisecond.
_MAX_KINDS: Final = 12
_MIN_WINDOWS_BEYOND: Final = 10  # windows in addition to the number of kinds
_STANDARD_ERRORS: Final = 2.0
_NEGLIGIBLE: Final = 1e-9  # below it, a divisor counts as 0


@dataclass(frozen=True, slots=True)
class AcceptanceEstimate:
    acceptance: float | None  # 0 to 1; None: hardly anything is drafted
    is_low: bool  # significantly below MIN_ACCEPTANCE
    num_tokens: float  # generated tokens; older tokens count less
    # For each position of a draft, the share of drafts whose token at this position is accepted.
    by_position: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class AcceptanceWindow:
    """The increase of an engine's counters between two reads: tokens, except `num_drafts`."""

    generated: Mapping[RequestKind, int]  # not empty, each above 0
    drafted: float
    accepted: float
    num_drafts: float = 0.0
    # Accepted tokens at each position of a draft; empty: the engine does not count them.
    accepted_by_position: tuple[float, ...] = ()


class AcceptanceRates:
    """The acceptance rates of one group of engines that serve the same kinds."""

    def __init__(self) -> None:
        # The weighted sums of the regression's normal equations.
        self._squares: dict[RequestKind, dict[RequestKind, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._drafted: dict[RequestKind, float] = defaultdict(float)
        self._accepted: dict[RequestKind, float] = defaultdict(float)
        self._num_drafts: dict[RequestKind, float] = defaultdict(float)
        self._accepted_by_position: list[dict[RequestKind, float]] = []
        self._num_tokens: dict[RequestKind, float] = defaultdict(float)
        self._excess_squares = 0.0  # squares of (accepted - MIN_ACCEPTANCE * drafted)
        self._num_windows = 0.0  # older windows count less

    def decay(self, passed_s: float) -> None:
        """Reduce the weights of all windows so far."""
        remaining_share = 0.5 ** (passed_s / HALF_LIFE_S)
        for row in self._squares.values():
            for kind in row:
                row[kind] *= remaining_share
        for sums in (
            *(self._drafted, self._accepted, self._num_drafts, self._num_tokens),
            *self._accepted_by_position,
        ):
            for kind in sums:
                sums[kind] *= remaining_share
        self._excess_squares *= remaining_share
        self._num_windows *= remaining_share

    def add(self, window: AcceptanceWindow) -> None:
        """Add a window with the weight 1 / generated tokens."""
        total = sum(window.generated.values())
        for kind, tokens in window.generated.items():
            for other_kind, other_tokens in window.generated.items():
                self._squares[kind][other_kind] += tokens * other_tokens / total
            self._drafted[kind] += tokens * window.drafted / total
            self._accepted[kind] += tokens * window.accepted / total
            self._num_drafts[kind] += tokens * window.num_drafts / total
            self._num_tokens[kind] += tokens
        self._add_positions(window, total)
        excess = window.accepted - MIN_ACCEPTANCE * window.drafted
        self._excess_squares += excess * excess / total
        self._num_windows += 1

    def _add_positions(self, window: AcceptanceWindow, total: int) -> None:
        while len(self._accepted_by_position) < len(window.accepted_by_position):
            self._accepted_by_position.append(defaultdict(float))
        # A window may have no counts by position.
        for sums, accepted in zip(
            self._accepted_by_position, window.accepted_by_position, strict=False
        ):
            for kind, tokens in window.generated.items():
                sums[kind] += tokens * accepted / total

    def estimates(self) -> dict[RequestKind, AcceptanceEstimate]:
        """Return the estimates of this gateway's kinds with enough data."""
        groups = self._group_kinds()
        if self._num_windows < len(groups) + _MIN_WINDOWS_BEYOND:
            return {}
        inverse = _invert_matrix(
            [[self._sum_squares(row, column) for column in groups] for row in groups]
        )
        if inverse is None:
            return {}
        all_sums = (self._drafted, self._accepted, self._num_drafts, *self._accepted_by_position)
        drafted, accepted, num_drafts, *accepted_by_position = (
            _multiply(inverse, [_sum_group(sums, group) for group in groups]) for sums in all_sums
        )
        excess = [a - MIN_ACCEPTANCE * d for a, d in zip(accepted, drafted, strict=True)]
        variance = self._estimate_variance(groups, excess)
        return {
            group[0]: AcceptanceEstimate(
                acceptance=_compute_share(accepted[n], drafted[n]),
                is_low=excess[n] + _STANDARD_ERRORS * math.sqrt(variance * inverse[n][n]) < 0,
                num_tokens=self._num_tokens[group[0]],
                by_position=tuple(
                    _compute_share(accepted_here[n], num_drafts[n]) or 0.0
                    for accepted_here in accepted_by_position
                ),
            )
            for n, group in enumerate(groups)
            # Not for several kinds together, FOREIGN, or a kind with too few tokens.
            if len(group) == 1 and group != [FOREIGN] and self._num_tokens[group[0]] >= MIN_TOKENS
        }

    def _group_kinds(self) -> list[list[RequestKind]]:
        """Return a group for each frequent kind, and one group of all other kinds."""
        frequent = [kind for kind, tokens in self._num_tokens.items() if tokens >= MIN_TOKENS]
        frequent = sorted(frequent, key=lambda kind: -self._num_tokens[kind])[:_MAX_KINDS]
        infrequent_kinds = [kind for kind in self._num_tokens if kind not in frequent]
        singles = [[kind] for kind in frequent]
        # A group without squares would make the matrix singular.
        has_others = self._sum_squares(infrequent_kinds, infrequent_kinds) > 0
        return [*singles, infrequent_kinds] if has_others else singles

    def _sum_squares(self, rows: Sequence[RequestKind], columns: Sequence[RequestKind]) -> float:
        return sum(self._squares[row].get(column, 0.0) for row in rows for column in columns)

    def _estimate_variance(
        self, groups: Sequence[Sequence[RequestKind]], excess: Sequence[float]
    ) -> float:
        """Return the variance of the noise, from the residual of the regression.

        `excess` is a - MIN_ACCEPTANCE * d of each group.
        """
        explained = sum(
            (_sum_group(self._accepted, group) - MIN_ACCEPTANCE * _sum_group(self._drafted, group))
            * value
            for group, value in zip(groups, excess, strict=True)
        )
        return max(0.0, self._excess_squares - explained) / (self._num_windows - len(groups))


def _sum_group(sums: Mapping[RequestKind, float], group: Sequence[RequestKind]) -> float:
    return sum(sums[kind] for kind in group)


def _compute_share(part: float, whole: float) -> float | None:
    """Return the share, from 0 to 1; None if the whole is almost 0."""
    if whole <= _NEGLIGIBLE:
        return None
    return min(1.0, max(0.0, part / whole))


def _multiply(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _invert_matrix(matrix: Matrix) -> Matrix | None:
    """Invert by Gauss-Jordan elimination; return None if the matrix is singular."""
    size = len(matrix)
    # Each row of the matrix, followed by the same row of the identity matrix.
    rows = [[*row, *(float(n == m) for m in range(size))] for n, row in enumerate(matrix)]
    largest = max((abs(matrix[n][n]) for n in range(size)), default=0.0)
    for n in range(size):
        pivot = max(range(n, size), key=lambda m: abs(rows[m][n]))
        if abs(rows[pivot][n]) <= _NEGLIGIBLE * largest:
            return None
        rows[n], rows[pivot] = rows[pivot], rows[n]
        rows[n] = [value / rows[n][n] for value in rows[n]]
        for m in range(size):
            if m != n:
                factor = rows[m][n]
                rows[m] = [a - factor * b for a, b in zip(rows[m], rows[n], strict=True)]
    return [row[size:] for row in rows]
