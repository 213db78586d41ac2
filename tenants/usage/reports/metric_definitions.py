"""Definitions of all metrics: name, meaning, formula and source. Pure.

Reports contain DEFINITION_VERSION. Increase it when a definition changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from caret.contracts.usage import SPANS_S
from tenants.models.rollup import CHECKED_AFTER, RETAINED_AFTER
from tenants.usage.reports.counters import CounterSource, UsageCounters
from tenants.usage.rollups.sql import MAX_EDIT_SHARE, MIN_SEEN_MS

DEFINITION_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """The price of a million tokens, in micros of any currency."""

    prompt_micros: int
    generated_micros: int


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    definition: str
    source: CounterSource
    unit: str  # "share" (0 to 1) or "micros"
    compute: Callable[[UsageCounters], float | None]  # None: unknown, e.g. the divisor is 0


def ratio(part: int, total: int) -> float | None:
    return part / total if total else None


def acceptance(counts: UsageCounters) -> float | None:
    return ratio(counts.accepted + counts.partially_accepted, counts.shown)


def completion_acceptance(counts: UsageCounters) -> float | None:
    return ratio(counts.accepted + counts.partially_accepted, counts.seen)


def weighted_acceptance(counts: UsageCounters) -> float | None:
    return ratio(counts.accepted_chars, counts.seen_chars)


def persistence(counts: UsageCounters, *, span_s: int) -> float | None:
    """Return the share of retained suggestions, of those checked `span_s` after acceptance."""
    return ratio(getattr(counts, RETAINED_AFTER[span_s]), getattr(counts, CHECKED_AFTER[span_s]))


def completed_code(counts: UsageCounters) -> float | None:
    """Return the share of accepted characters in all accepted and typed ones.

    None: no client reported typed characters, so the share would always be 1.
    """
    if not counts.typed_chars:
        return None
    return ratio(counts.accepted_chars, counts.accepted_chars + counts.typed_chars)


def validity(counts: UsageCounters) -> float | None:
    return ratio(counts.parsed_valid, counts.parsed)


def cancellation(counts: UsageCounters) -> float | None:
    return ratio(counts.cancelled, counts.requests)


def cost_per_thousand_accepted_tokens(counts: UsageCounters, *, price: TokenPrice) -> float | None:
    """Return the cost in micros of 1,000 accepted tokens. The cost includes all requests."""
    cost = (
        counts.prompt_tokens * price.prompt_micros
        + counts.generated_tokens * price.generated_micros
    ) / 1_000_000
    return cost / counts.accepted_tokens * 1_000 if counts.accepted_tokens else None


METRICS: Final = (
    Metric(
        "acceptance",
        "Suggestions accepted, as a whole or in parts, of those shown.",
        CounterSource.CLIENT,
        "share",
        acceptance,
    ),
    Metric(
        "completion_acceptance",
        "Completion acceptance rate (CAR): suggestions accepted, as a whole or in parts, of those"
        f" shown for {MIN_SEEN_MS} ms or accepted.",
        CounterSource.CLIENT,
        "share",
        completion_acceptance,
    ),
    Metric(
        "weighted_acceptance",
        "CAR by characters: characters accepted, of those in suggestions shown for"
        f" {MIN_SEEN_MS} ms or accepted.",
        CounterSource.CLIENT,
        "share",
        weighted_acceptance,
    ),
    *(
        Metric(
            f"persistence_{span_s}",
            f"Accepted suggestions of which at least {1 - MAX_EDIT_SHARE:.0%} is left after"
            f" {span_s} s (edit distance at most {MAX_EDIT_SHARE:.0%} of the accepted text), of"
            " those that were checked then.",
            CounterSource.CLIENT,
            "share",
            partial(persistence, span_s=span_s),
        )
        for span_s in SPANS_S
    ),
    Metric(
        "completed_code",
        "Characters accepted, of those accepted and those typed by hand.",
        CounterSource.CLIENT,
        "share",
        completed_code,
    ),
    Metric(
        "validity",
        "Completions that a parser neither truncated nor withheld, of those that it checked.",
        CounterSource.SERVER,
        "share",
        validity,
    ),
    Metric(
        "cancellation",
        "Requests that the client cancelled or superseded, of all requests.",
        CounterSource.SERVER,
        "share",
        cancellation,
    ),
)
COST: Final = "cost_per_thousand_accepted_tokens"


def cost_metric(price: TokenPrice | None) -> Metric:
    """Return the cost metric; `price` None: its value is always unknown.

    Its source is the client, because the number of accepted tokens depends on reports of clients.
    """
    definition = (
        "Micros for the prompt and generated tokens of all requests, for each thousand generated"
        " tokens that were accepted."
    )
    compute: Callable[[UsageCounters], float | None] = (
        partial(cost_per_thousand_accepted_tokens, price=price) if price else lambda _: None
    )
    return Metric(COST, definition, CounterSource.CLIENT, "micros", compute)
