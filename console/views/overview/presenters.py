"""Figures and charts of the overview pages, Summary and Performance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Mode
from console.charts.chart import Chart, Series, build_bar_chart, build_line_chart
from console.layout.tabs import Tab, tabs_of
from console.texts.labels import MODE_LABELS
from console.usage_filters.filter_form import UsageFilters
from console.usage_filters.number_format import (
    COUNTS,
    SHARES,
    FigureChange,
    describe_change,
    format_count,
    format_milliseconds,
    format_one_decimal,
    format_share,
    share_noise,
)
from console.usage_filters.time_buckets import list_times, values_over_time
from tenants.base.permissions import Permission
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.counters import CounterSource, UsageCounters
from tenants.usage.reports.latency import LatencyReport, LatencyRow
from tenants.usage.reports.metric_definitions import acceptance, cancellation, ratio
from tenants.usage.reports.overview import Overview
from tenants.usage.reports.queries import ReportRow

SOURCES: Final[dict[CounterSource, str | Promise]] = {
    CounterSource.SERVER: _("Measured by the server"),
    CounterSource.CLIENT: _("Reported by the client"),
}

# A relative change of a latency, or of the engine load, counts as random variation if it is not
# greater than this.
_NOISE: Final = 0.05


@dataclass(frozen=True, slots=True)
class OverviewFigure:
    label: str
    value: str  # "": unknown
    change: FigureChange | None  # from the previous period; None: unknown
    definition: str
    source: str  # says who measured the figure
    url: str  # the page with details; "": none
    tone: str = ""  # good | bad | "": neither
    comparison: str = ""  # such as the target; "": none


@dataclass(frozen=True, slots=True)
class SpeedLine:
    """The latency of one completion mode, as formatted texts."""

    name: str  # of the mode
    completed: str  # number of completed requests
    # Time to the first token. "": nothing was completed.
    p50: str
    p99: str
    # Display latency. "": not reported.
    display_p50: str
    display_p99: str
    target: str  # of `p99`
    is_on_target: bool
    change: FigureChange | None  # of `p99`, from the previous period; None: unknown
    url: str  # the mode's requests, slowest first


def overview_tabs(request: HttpRequest, actor: Actor) -> list[Tab]:
    """Return the tabs; none for users who see only their own usage."""
    if not actor.has_permission(Permission.READ_USAGE):
        return []
    return tabs_of(
        request,
        [("overview", gettext("Summary")), ("overview-performance", gettext("Performance"))],
    )


def list_figures(usage_filters: UsageFilters, usage_overview: Overview) -> list[OverviewFigure]:
    """Return the performance figures. The total must not be suppressed."""
    assert usage_overview.total.counts is not None
    overview_figures = [
        _build_first_token_figure(usage_filters, usage_overview.latency),
        _build_cancelled_figure(usage_filters, usage_overview),
        _build_cached_figure(usage_filters, usage_overview),
    ]
    if usage_overview.quality is not None:
        overview_figures.append(_build_accepted_figure(usage_filters, usage_overview))
    return [*overview_figures, _build_load_figure(usage_filters, usage_overview.latency)]


def build_speed_lines(usage_filters: UsageFilters, usage_overview: Overview) -> list[SpeedLine]:
    if usage_overview.latency is None:
        return []
    current, before = usage_overview.latency.current, usage_overview.latency.before
    return [
        _build_speed_line(usage_filters, current[mode], before.get(mode))
        for mode in MODE_LABELS
        if mode in current
    ]


def _build_speed_line(
    usage_filters: UsageFilters, speed: LatencyRow, before: LatencyRow | None
) -> SpeedLine:
    return SpeedLine(
        name=str(MODE_LABELS[speed.mode]),
        completed=format_count(speed.completed),
        p50=_format_optional_ms(speed.p50_ms),
        p99=_format_optional_ms(speed.p99_ms),
        display_p50=_format_optional_ms(speed.display_p50_ms),
        display_p99=_format_optional_ms(speed.display_p99_ms),
        target=format_milliseconds(speed.target_ms),
        is_on_target=speed.is_on_target,
        change=describe_change(
            speed.p99_ms, None if before is None else before.p99_ms, better="less", noise=_NOISE
        ),
        url=_request_list_url(usage_filters, mode=speed.mode.value, order="slow"),
    )


def _format_optional_ms(value_ms: float | None) -> str:
    return "" if value_ms is None else format_milliseconds(value_ms)


def _build_first_token_figure(
    usage_filters: UsageFilters, latency: LatencyReport | None
) -> OverviewFigure:
    inline = None if latency is None else latency.current.get(Mode.INLINE)
    before = None if latency is None else latency.before.get(Mode.INLINE)
    p99_ms = inline.p99_ms if inline else None
    return OverviewFigure(
        label=gettext("First token p99, inline"),
        value="" if p99_ms is None else format_milliseconds(p99_ms),
        change=describe_change(
            p99_ms, before.p99_ms if before else None, better="less", noise=_NOISE
        ),
        definition=gettext(
            "99th percentile of the time from the request's arrival at the gateway to "
            "the first text sent, for completed requests."
        ),
        source=str(SOURCES[CounterSource.SERVER]),
        url=_request_list_url(usage_filters, mode=Mode.INLINE.value, order="slow"),
        tone="" if inline is None or p99_ms is None else ("good" if inline.is_on_target else "bad"),
        comparison="" if inline is None else _describe_target(inline),
    )


def _describe_target(speed: LatencyRow) -> str:
    return gettext("target: under %(time)s") % {"time": format_milliseconds(speed.target_ms)}


def _build_cancelled_figure(
    usage_filters: UsageFilters, usage_overview: Overview
) -> OverviewFigure:
    return _build_share_figure(
        gettext("Cancellation rate"),
        _compare_share(
            cancellation,
            (usage_overview.total.counts, usage_overview.before.counts),
            num_observations=lambda counts: counts.requests,
            better="less",
        ),
        definition=gettext("Share of requests that the client cancelled or superseded."),
        source=CounterSource.SERVER,
        url=_request_list_url(usage_filters, ended="cancelled"),
    )


def _build_cached_figure(usage_filters: UsageFilters, usage_overview: Overview) -> OverviewFigure:
    return _build_share_figure(
        gettext("Prefix-cache hits"),
        _compare_share(
            cache_hit_rate,
            (usage_overview.total.counts, usage_overview.before.counts),
            # A request's tokens mostly hit the cache together: each request is one observation.
            num_observations=lambda counts: counts.requests,
            better="more",
        ),
        definition=gettext(
            "Share of prompt tokens that came from the engine's cache, for requests "
            "whose engine reported it."
        ),
        source=CounterSource.SERVER,
        url=f"{reverse('console:cache')}?{usage_filters.query}",
    )


def _build_accepted_figure(usage_filters: UsageFilters, usage_overview: Overview) -> OverviewFigure:
    assert usage_overview.quality is not None
    assert usage_overview.quality_before is not None
    return build_acceptance_figure(
        usage_filters, usage_overview.quality, usage_overview.quality_before
    )


def build_acceptance_figure(
    usage_filters: UsageFilters, now: ReportRow, before: ReportRow
) -> OverviewFigure:
    """Return the figure. `now` is the total of the period, `before` of the previous period."""
    return _build_share_figure(
        gettext("Acceptance rate"),
        _compare_share(
            acceptance,
            (now.counts, before.counts),
            num_observations=lambda counts: counts.shown,
            better="more",
        ),
        definition=gettext("Share of shown suggestions that were accepted fully or partially."),
        source=CounterSource.CLIENT,
        url=f"{reverse('console:usage-quality')}?{usage_filters.query}",
    )


def _build_load_figure(
    usage_filters: UsageFilters, latency: LatencyReport | None
) -> OverviewFigure:
    load = None if latency is None else latency.load
    return OverviewFigure(
        label=gettext("Engine load"),
        value="" if load is None else format_one_decimal(load),
        change=describe_change(
            load, None if latency is None else latency.load_before, better="less", noise=_NOISE
        ),
        definition=gettext(
            "Average number of requests in flight at a replica when a new request arrives. "
            "Each gateway counts its own requests, from all tenants."
        ),
        source=str(SOURCES[CounterSource.SERVER]),
        url=_request_list_url(usage_filters, order="replica_load"),
    )


def cache_hit_rate(counts: UsageCounters) -> float | None:
    return ratio(counts.cached_tokens, counts.prompt_tokens_with_cache_info)


@dataclass(frozen=True, slots=True)
class _ComparedShare:
    now: float | None  # None: unknown
    change: FigureChange | None  # None: unknown


def _compare_share(
    metric: Callable[[UsageCounters], float | None],
    counts: tuple[UsageCounters | None, UsageCounters | None],
    *,
    num_observations: Callable[[UsageCounters], int],
    better: str,
) -> _ComparedShare:
    """Compare a share with the previous period.

    `counts` has the counters of the period, then those of the previous period; None: suppressed.
    `better` is "more" or "less".
    """
    now, before = (None if figures is None else metric(figures) for figures in counts)
    noise = share_noise(
        now, before, [0 if figures is None else num_observations(figures) for figures in counts]
    )
    change = describe_change(now, before, is_share=True, better=better, noise=noise)
    return _ComparedShare(now, change)


def _build_share_figure(
    label: str, compared: _ComparedShare, *, definition: str, source: CounterSource, url: str
) -> OverviewFigure:
    return OverviewFigure(
        label=label,
        value="" if compared.now is None else format_share(compared.now),
        change=compared.change,
        definition=definition,
        source=str(SOURCES[source]),
        url=url,
    )


def _request_list_url(usage_filters: UsageFilters, **more: str) -> str:
    return f"{reverse('console:usage-requests')}?{usage_filters.with_filter(**more)}"


def build_requests_chart(usage_filters: UsageFilters, rows: list[ReportRow]) -> Chart:
    """Return the chart with suggestions at the bottom, and requests without a suggestion above."""
    series = [
        Series(
            gettext("Suggestions"),
            values_over_time(usage_filters, rows, lambda counts: counts.suggestions),
        ),
        Series(
            gettext("Other requests"),
            values_over_time(usage_filters, rows, _count_requests_without_suggestion),
        ),
    ]
    title = gettext("Requests per hour") if usage_filters.is_hourly else gettext("Requests per day")
    return build_bar_chart(title, list_times(usage_filters), series, COUNTS)


def build_accepted_chart(
    usage_filters: UsageFilters, rows: list[ReportRow], quality: ReportRow | None
) -> Chart | None:
    """Return the chart; None if the user may not see quality, or if it is suppressed."""
    if quality is None or quality.counts is None:
        return None
    series = [Series(gettext("Acceptance rate"), values_over_time(usage_filters, rows, acceptance))]
    title = (
        gettext("Acceptance per hour") if usage_filters.is_hourly else gettext("Acceptance per day")
    )
    return build_line_chart(title, list_times(usage_filters), series, SHARES, at_most=1)


def _count_requests_without_suggestion(counts: UsageCounters) -> float:
    return counts.requests - counts.suggestions
