"""A report as a table: which columns it has, of which numbers, and what is said of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.usage_filters.number_format import count, share
from tenants.usage.reports.counters import Counts, Source
from tenants.usage.reports.metric_definitions import (
    acceptance,
    cancellation,
    completed_code,
    completion_acceptance,
    persistence,
    ratio,
    validity,
    weighted_acceptance,
)
from tenants.usage.reports.queries import Kind, Row

Of = Callable[[Counts], float | None]


@dataclass(frozen=True, slots=True)
class Column:
    name: str  # in files
    title: str | Promise
    definition: str | Promise
    source: Source
    of: Of
    write: Callable[[float], str] = count


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    url: str  # the rows behind it; "": there are none to be shown
    users: str
    cells: list[tuple[str | Promise, str]]  # the column's title and the value
    why_hidden: str  # "": it is shown


def _cached(counts: Counts) -> float | None:
    return ratio(counts.cached_tokens, counts.told_prompt_tokens)


def _taken(counts: Counts) -> float:
    return counts.accepted + counts.partly_accepted


_S, _C = Source.SERVER, Source.CLIENT
COLUMNS: Final[dict[Kind, tuple[Column, ...]]] = {
    Kind.USAGE: (
        Column("requests", _("Requests"), _("All of them, however they ended."), _S,
               lambda counts: counts.requests),
        Column("suggestions", _("Suggestions"), _("Completed with text."), _S,
               lambda counts: counts.suggestions),
        Column("cancellation", _("Cancelled"),
               _("Requests taken back or superseded, of all requests."), _S, cancellation, share),
        Column("prompt_tokens", _("Prompt tokens"), _("Of all requests."), _S,
               lambda counts: counts.prompt_tokens),
        Column("cached", _("From cache"),
               _("Prompt tokens that were cached, of those of requests whose engine told."), _S,
               _cached, share),
        Column("generated_tokens", _("Generated tokens"), _("Of all requests."), _S,
               lambda counts: counts.generated_tokens),
        Column("errors", _("Errors"), _("Requests that ended with one."), _S,
               lambda counts: counts.errors),
    ),
    Kind.QUALITY: (
        Column("shown", _("Shown"), _("Suggestions that were shown."), _C,
               lambda counts: counts.shown),
        Column("accepted", _("Accepted"), _("Of those, as a whole or in parts."), _C, _taken),
        Column("acceptance", _("Acceptance"), _("Accepted, of those shown."), _C, acceptance,
               share),
        Column("completion_acceptance", _("CAR"),
               _("Accepted, of those shown for 750 ms at least or accepted."), _C,
               completion_acceptance, share),
        Column("weighted_acceptance", _("wCAR"), _("CAR by characters."), _C,
               weighted_acceptance, share),
        Column("persistence_30", _("Left after 30 s"),
               _("Accepted suggestions of which 67% is left after 30 s, of those looked at then."),
               _C, lambda counts: persistence(counts, span_s=30), share),
        Column("persistence_1800", _("Left after 30 min"), _("The same after half an hour."), _C,
               lambda counts: persistence(counts, span_s=1_800), share),
        Column("completed_code", _("Completed code"),
               _("Characters accepted, of those accepted and typed by hand."), _C,
               completed_code, share),
        Column("validity", _("Valid"),
               _("Completions that a parser neither cut nor withheld, of those it judged."), _S,
               validity, share),
    ),
}  # fmt: skip


def cells(row: Row, columns: Sequence[Column]) -> list[tuple[str | Promise, str]]:
    if row.counts is None:
        return []
    found = ((column, column.of(row.counts)) for column in columns)
    return [(each.title, "–" if value is None else each.write(value)) for each, value in found]
