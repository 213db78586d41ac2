"""The columns of the usage and quality reports, with their definitions and sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.usage_filters.number_format import count, share
from tenants.usage.reports.counters import CounterOrigin, UsageCounters
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
from tenants.usage.reports.queries import ReportKind, ReportRow

Of = Callable[[UsageCounters], float | None]


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str  # column name in CSV files
    title: str | Promise
    definition: str | Promise
    source: CounterOrigin
    of: Of
    write: Callable[[float], str] = count


@dataclass(frozen=True, slots=True)
class ReportTableRow:
    label: str
    url: str  # the requests behind the row; "": none to list
    users: str
    cells: list[tuple[str | Promise, str]]  # column title and value
    why_hidden: str  # "": not suppressed


def _cached(counts: UsageCounters) -> float | None:
    return ratio(counts.cached_tokens, counts.prompt_tokens_with_cache_info)


def _taken(counts: UsageCounters) -> float:
    return counts.accepted + counts.partly_accepted


_S, _C = CounterOrigin.SERVER, CounterOrigin.CLIENT
COLUMNS: Final[dict[ReportKind, tuple[ReportColumn, ...]]] = {
    ReportKind.USAGE: (
        ReportColumn("requests", _("Requests"), _("All of them, however they ended."), _S,
               lambda counts: counts.requests),
        ReportColumn("suggestions", _("Suggestions"), _("Completed with text."), _S,
               lambda counts: counts.suggestions),
        ReportColumn("cancellation", _("Cancelled"),
               _("Requests taken back or superseded, of all requests."), _S, cancellation, share),
        ReportColumn("prompt_tokens", _("Prompt tokens"), _("Of all requests."), _S,
               lambda counts: counts.prompt_tokens),
        ReportColumn("cached", _("From cache"),
               _("Prompt tokens that were cached, of those of requests whose engine told."), _S,
               _cached, share),
        ReportColumn("generated_tokens", _("Generated tokens"), _("Of all requests."), _S,
               lambda counts: counts.generated_tokens),
        ReportColumn("errors", _("Errors"), _("Requests that ended with one."), _S,
               lambda counts: counts.errors),
    ),
    ReportKind.QUALITY: (
        ReportColumn("shown", _("Shown"), _("Suggestions that were shown."), _C,
               lambda counts: counts.shown),
        ReportColumn("accepted", _("Accepted"), _("Of those, as a whole or in parts."), _C, _taken),
        ReportColumn("acceptance", _("Acceptance"), _("Accepted, of those shown."), _C, acceptance,
               share),
        ReportColumn("completion_acceptance", _("CAR"),
               _("Accepted, of those shown for 750 ms at least or accepted."), _C,
               completion_acceptance, share),
        ReportColumn("weighted_acceptance", _("wCAR"), _("CAR by characters."), _C,
               weighted_acceptance, share),
        ReportColumn("persistence_30", _("Left after 30 s"),
               _("Accepted suggestions of which 67% is left after 30 s, of those looked at then."),
               _C, lambda counts: persistence(counts, span_s=30), share),
        ReportColumn("persistence_1800", _("Left after 30 min"),
               _("The same after half an hour."), _C,
               lambda counts: persistence(counts, span_s=1_800), share),
        ReportColumn("completed_code", _("Completed code"),
               _("Characters accepted, of those accepted and typed by hand."), _C,
               completed_code, share),
        ReportColumn("validity", _("Valid"),
               _("Completions that a parser neither cut nor withheld, of those it judged."), _S,
               validity, share),
    ),
}  # fmt: skip


def cells(row: ReportRow, columns: Sequence[ReportColumn]) -> list[tuple[str | Promise, str]]:
    if row.counts is None:
        return []
    found = ((column, column.of(row.counts)) for column in columns)
    return [(each.title, "–" if value is None else each.write(value)) for each, value in found]
