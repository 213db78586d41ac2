"""The languages, editors and models with the most requests."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.usage_filters.display_names import named
from console.usage_filters.filter_form import UsageFilters
from console.usage_filters.number_format import count, share
from tenants.usage.reports.metric_definitions import acceptance
from tenants.usage.reports.overview import Overview
from tenants.usage.reports.queries import GroupBy, ReportRow

_SHOWN: Final = 5
_TITLES: Final[dict[GroupBy, str | Promise]] = {
    GroupBy.LANGUAGE: _("Languages"),
    GroupBy.EDITOR: _("Editors"),
    GroupBy.MODEL: _("Models"),
}


@dataclass(frozen=True, slots=True)
class TopLine:
    name: str
    url: str  # this page, filtered by the group
    requests: int
    requests_text: str
    acceptance: str  # "": not reported, or not visible to the user


@dataclass(frozen=True, slots=True)
class TopList:
    title: str
    lines: list[TopLine]
    most: int  # requests of the first line
    num_more: int
    num_hidden: int  # suppressed because the groups are too small
    url: str  # the list of all groups


def tops(question: UsageFilters, found: Overview) -> list[TopList]:
    return [_build_top_list(question, found, group_by) for group_by in _TITLES]


def _build_top_list(question: UsageFilters, found: Overview, group_by: GroupBy) -> TopList:
    rows = found.by[group_by]
    shown = sorted((row for row in rows if row.counts), key=_count_requests, reverse=True)
    lines = [_to_top_line(question, found, group_by, row) for row in shown[:_SHOWN]]
    return TopList(
        title=str(_TITLES[group_by]),
        lines=lines,
        most=max((line.requests for line in lines), default=1),
        num_more=max(0, len(shown) - _SHOWN),
        num_hidden=len(rows) - len(shown),
        url=f"{reverse('console:usage')}?{question.with_filter(by=group_by.value)}",
    )


def _to_top_line(
    question: UsageFilters, found: Overview, group_by: GroupBy, row: ReportRow
) -> TopLine:
    assert row.counts is not None
    taken = acceptance(row.counts) if found.quality is not None else None
    return TopLine(
        name=named(group_by.value, row.label) or gettext("unknown"),
        url=f"?{question.with_filter(**{group_by.value: row.key})}",
        requests=row.counts.requests,
        requests_text=count(row.counts.requests),
        acceptance="" if taken is None else share(taken),
    )


def _count_requests(row: ReportRow) -> int:
    return row.counts.requests if row.counts else 0
