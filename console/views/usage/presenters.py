"""The columns of the usage and quality reports, with their definitions and sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.usage_filters.number_format import format_count, format_share
from tenants.usage.reports.counters import CounterSource, UsageCounters
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

MetricFunction = Callable[[UsageCounters], float | None]  # None: no value, such as 0 of 0


@dataclass(frozen=True, slots=True)
class ReportColumn:
    name: str  # of the column in CSV files
    title: str | Promise
    definition: str | Promise
    source: CounterSource
    compute: MetricFunction
    format_value: Callable[[float], str] = format_count  # for pages; CSV files have the number


@dataclass(frozen=True, slots=True)
class ReportTableRow:
    label: str
    url: str  # the list of the row's requests; "": they cannot be listed
    users: str  # number of active users; "": suppressed
    cells: list[tuple[str, str]]  # column title and value
    suppression_text: str  # the reason of the suppression; "": not suppressed


def _cached_share(counts: UsageCounters) -> float | None:
    return ratio(counts.cached_tokens, counts.prompt_tokens_with_cache_info)


def _accepted_suggestions(counts: UsageCounters) -> float:
    return counts.accepted + counts.partially_accepted


COLUMNS: Final[dict[ReportKind, tuple[ReportColumn, ...]]] = {
    ReportKind.USAGE: (
        ReportColumn(
            "requests",
            _("Requests"),
            _("All requests, however they ended."),
            CounterSource.SERVER,
            lambda counts: counts.requests,
        ),
        ReportColumn(
            "suggestions",
            _("Suggestions"),
            _("Requests that completed with text."),
            CounterSource.SERVER,
            lambda counts: counts.suggestions,
        ),
        ReportColumn(
            "cancellation",
            _("Cancelled"),
            _("Share of requests that were cancelled or superseded."),
            CounterSource.SERVER,
            cancellation,
            format_share,
        ),
        ReportColumn(
            "prompt_tokens",
            _("Prompt tokens"),
            _("In all requests."),
            CounterSource.SERVER,
            lambda counts: counts.prompt_tokens,
        ),
        ReportColumn(
            "cached",
            _("From cache"),
            _(
                "Share of prompt tokens that came from the cache, for requests whose "
                "engine reported it."
            ),
            CounterSource.SERVER,
            _cached_share,
            format_share,
        ),
        ReportColumn(
            "generated_tokens",
            _("Generated tokens"),
            _("In all requests."),
            CounterSource.SERVER,
            lambda counts: counts.generated_tokens,
        ),
        ReportColumn(
            "errors",
            _("Errors"),
            _("Requests that ended with an error."),
            CounterSource.SERVER,
            lambda counts: counts.errors,
        ),
    ),
    ReportKind.QUALITY: (
        ReportColumn(
            "shown",
            _("Shown"),
            _("Suggestions that an editor showed."),
            CounterSource.CLIENT,
            lambda counts: counts.shown,
        ),
        ReportColumn(
            "accepted",
            _("Accepted"),
            _("Shown suggestions that were accepted fully or partially."),
            CounterSource.CLIENT,
            _accepted_suggestions,
        ),
        ReportColumn(
            "acceptance",
            _("Acceptance rate"),
            _("Share of shown suggestions that were accepted."),
            CounterSource.CLIENT,
            acceptance,
            format_share,
        ),
        ReportColumn(
            "completion_acceptance",
            _("CAR"),
            _(
                "Completion acceptance rate: share of accepted suggestions among those "
                "accepted or shown for at least 750 ms."
            ),
            CounterSource.CLIENT,
            completion_acceptance,
            format_share,
        ),
        ReportColumn(
            "weighted_acceptance",
            _("wCAR"),
            _("Weighted completion acceptance rate: CAR weighted by characters."),
            CounterSource.CLIENT,
            weighted_acceptance,
            format_share,
        ),
        ReportColumn(
            "persistence_30",
            _("Persisted after 30 s"),
            _(
                "Share of accepted suggestions of which at least 67% is left after 30 "
                "seconds, among those checked at that time."
            ),
            CounterSource.CLIENT,
            lambda counts: persistence(counts, span_s=30),
            format_share,
        ),
        ReportColumn(
            "persistence_1800",
            _("Persisted after 30 min"),
            _(
                "Share of accepted suggestions of which at least 67% is left after 30 "
                "minutes, among those checked at that time."
            ),
            CounterSource.CLIENT,
            lambda counts: persistence(counts, span_s=1_800),
            format_share,
        ),
        ReportColumn(
            "completed_code",
            _("Completed code"),
            _("Share of accepted characters among all accepted and typed characters."),
            CounterSource.CLIENT,
            completed_code,
            format_share,
        ),
        ReportColumn(
            "validity",
            _("Valid syntax"),
            _(
                "Share of syntax-checked completions that the syntax check neither truncated "
                "nor withheld."
            ),
            CounterSource.SERVER,
            validity,
            format_share,
        ),
    ),
}


def list_titled_columns(kind: ReportKind) -> list[tuple[str, ReportColumn]]:
    """Return the columns with their titles, translated once for all rows (see `format_cells`)."""
    return [(str(column.title), column) for column in COLUMNS[kind]]


def format_cells(
    row: ReportRow, titled_columns: Sequence[tuple[str, ReportColumn]]
) -> list[tuple[str, str]]:
    """Return the title and the formatted value of each column; [] if the row is suppressed."""
    if row.counts is None:
        return []
    values = ((title, column, column.compute(row.counts)) for title, column in titled_columns)
    return [
        (title, "–" if value is None else column.format_value(value))
        for title, column, value in values
    ]
