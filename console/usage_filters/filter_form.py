"""The period and the filters in the URL of a usage page.

    ?range=7d&language=python          ?range=custom&start=2026-11-01&end=2026-11-15

The period `24h` is 24 whole clock hours; the last one is the current hour. Other periods are whole
UTC days, as in rollups, reports and exports. They include their last day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.usage_filters.display_names import display_name
from tenants.usage.reports.filters import COLUMNS, ReportFilter
from tenants.usage.reports.queries import MAX_DAYS, GroupBy, ReportQuery

# Values of `range` in the URL.
HOURS: Final = "24h"
CUSTOM: Final = "custom"
_NUM_DAYS: Final = {"7d": 7, "30d": 30, "90d": 90}
RANGES: Final[Mapping[str, str | Promise]] = {
    HOURS: _("24 hours"),
    "7d": _("7 days"),
    "30d": _("30 days"),
    "90d": _("90 days"),
    CUSTOM: _("Custom"),
}
_DEFAULT_RANGE: Final = "7d"
_MAX_NAME_CHARS: Final = 100
# Stands in URLs for the value "". Usage records have this value if the client sent none.
UNKNOWN: Final = "-"
# Titles of the filters, by parameter.
_LABELS: Final[Mapping[str, str | Promise]] = {
    "language": _("Language"),
    "editor": _("Editor"),
    "model": _("Model"),
    "variant": _("Variant"),
    "team": _("Team"),
}


class UsageFilterForm(forms.Form):
    range = forms.ChoiceField(choices=list(RANGES.items()), required=False)
    start = forms.DateField(
        label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    end = forms.DateField(
        label=_("To (inclusive)"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    language = forms.CharField(max_length=_MAX_NAME_CHARS, required=False)
    editor = forms.CharField(max_length=_MAX_NAME_CHARS, required=False)
    model = forms.CharField(max_length=_MAX_NAME_CHARS, required=False)
    variant = forms.CharField(max_length=_MAX_NAME_CHARS, required=False)
    team = forms.UUIDField(required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("range") == CUSTOM and not self.errors:
            self._check_days(cleaned.get("start"), cleaned.get("end"))
        return cleaned

    def _check_days(self, start: date | None, end: date | None) -> None:
        today = datetime.now(UTC).date()
        end = end or today
        start = start or _choose_start(end, today)
        if end < start:
            self.add_error("end", _("The end is before the start."))
        elif (end - start).days >= MAX_DAYS:
            self.add_error("end", _("Choose a period of up to one year."))
        # Outside these years, later computations could exceed Python's dates (years 1 to 9999).
        elif start.year < 1900 or end.year > 9000:
            self.add_error("start", _("There is no data for this period."))


@dataclass(frozen=True, slots=True)
class UsageFilterOption:
    value: str  # in the URL
    title: str
    is_selected: bool


@dataclass(frozen=True, slots=True)
class UsageFilter:
    name: str  # of the parameter in the URL
    title: str
    choices: list[UsageFilterOption]
    default_title: str = ""  # of the choice without a filter; "": the page shows "All"


@dataclass(frozen=True, slots=True)
class RangeLink:
    """A link to the same page with another period."""

    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """The period and the filters of a page.

    If the URL has an invalid parameter, they are the default period without filters.
    """

    form: UsageFilterForm  # contains the errors of the URL
    report_query: ReportQuery
    range: str  # one of RANGES
    parameters: Mapping[str, str]  # for URLs with this period and these filters

    @property
    def is_invalid(self) -> bool:
        return bool(self.form.errors)

    @property
    def is_hourly(self) -> bool:
        return self.report_query.hours_until is not None

    @property
    def is_custom(self) -> bool:
        return self.range == CUSTOM

    @property
    def query(self) -> str:
        """The query string for links to other pages with the same period and filters."""
        return urlencode(self.parameters)

    @property
    def last_day(self) -> date:
        return self.report_query.end - timedelta(days=1)

    @property
    def ranges(self) -> list[RangeLink]:
        return [
            RangeLink(str(title), f"?{self._with(range=name)}", name == self.range)
            for name, title in RANGES.items()
        ]

    @property
    def is_filtered(self) -> bool:
        return not self.report_query.filter.is_empty

    @property
    def without_filters(self) -> str:
        """The link, with its question mark, to this page with the same period and no filters."""
        parameters = {name: text for name, text in self.parameters.items() if name not in _LABELS}
        return f"?{urlencode(parameters)}"

    def list_filters(
        self, choices: Mapping[str, list[str]], teams: Mapping[str, str]
    ) -> list[UsageFilter]:
        """Return the filters that have choices.

        `choices` are the values of each filter, and `teams` the names of teams by ID.
        """
        filters = [
            UsageFilter(name, str(_LABELS[name]), self._choices(name, choices.get(name, [])))
            for name in COLUMNS
        ]
        if teams:
            options = [
                UsageFilterOption(team_id, name, team_id == self.parameters.get("team"))
                for team_id, name in teams.items()
            ]
            filters.append(UsageFilter("team", str(_LABELS["team"]), options))
        return [list_filter for list_filter in filters if list_filter.choices]

    def _choices(self, name: str, values: list[str]) -> list[UsageFilterOption]:
        selected = self.parameters.get(name)
        url_values = [value or UNKNOWN for value in values]
        if selected and selected not in url_values:
            url_values.append(selected)
        return [
            UsageFilterOption(value, _title_of(name, value), value == selected)
            for value in url_values
        ]

    def with_filter(self, **values: str) -> str:
        """Return the query string with added or changed parameters. A value "" becomes UNKNOWN."""
        return self._with(**{name: value or UNKNOWN for name, value in values.items()})

    def _with(self, **changes: str) -> str:
        return urlencode({**self.parameters, **changes})


def _title_of(name: str, url_value: str) -> str:
    """Return the title of a filter's value. `name` is the filter's parameter in the URL."""
    return str(_("unknown")) if url_value == UNKNOWN else display_name(name, url_value)


def read_usage_filters(request: HttpRequest, *, now: datetime) -> UsageFilters:
    """Return the period and the filters of the request's URL."""
    form = UsageFilterForm(request.GET)
    is_valid = form.is_valid()
    cleaned = form.cleaned_data if is_valid else {}
    range_name = cleaned.get("range") or _DEFAULT_RANGE
    texts = {name: request.GET.get(name, "").strip() for name in form.fields} if is_valid else {}
    parameters = {name: text for name, text in texts.items() if text}
    return UsageFilters(
        form, _to_query(cleaned, range_name, now), range_name, {"range": range_name} | parameters
    )


def filter_last_30_days(now: datetime) -> UsageFilters:
    """Return the filters of a page without parameters that shows the last 30 days."""
    range_name = "30d"
    return UsageFilters(
        UsageFilterForm({}), _to_query({}, range_name, now), range_name, {"range": range_name}
    )


def group_query(usage_filters: UsageFilters, group_by: GroupBy | None) -> ReportQuery:
    """Return the report query of the filters, grouped by `group_by`; None: only the total."""
    report_query = usage_filters.report_query
    return ReportQuery(
        report_query.start,
        report_query.end,
        group_by,
        report_query.filter,
        report_query.hours_until,
    )


def _to_query(cleaned: Mapping[str, Any], range_name: str, now: datetime) -> ReportQuery:
    """Return the report query of the form's valid values, ungrouped."""
    today = now.astimezone(UTC).date()
    tomorrow = today + timedelta(days=1)
    report_filter = _to_filter(cleaned)
    if range_name == HOURS:
        return ReportQuery(today, tomorrow, filter=report_filter, hours_until=now)
    if range_name == CUSTOM:
        last_day = cleaned.get("end") or today
        start = cleaned.get("start") or _choose_start(last_day, today)
        return ReportQuery(start, last_day + timedelta(days=1), filter=report_filter)
    start = tomorrow - timedelta(days=_NUM_DAYS[range_name])
    return ReportQuery(start, tomorrow, filter=report_filter)


def _choose_start(last_day: date, today: date) -> date:
    """Return the first day of a custom range without a start: that of the default range.

    If the default range begins after `last_day`, the custom range has only its last day.
    """
    default_start = today + timedelta(days=1 - _NUM_DAYS[_DEFAULT_RANGE])
    return min(default_start, last_day)


def _to_filter(cleaned: Mapping[str, Any]) -> ReportFilter:
    """Return the filter. None in a filter means every value, and "" the value of UNKNOWN."""
    values = {name: cleaned.get(name) or None for name in COLUMNS}
    filter_values = {name: "" if value == UNKNOWN else value for name, value in values.items()}
    return ReportFilter(**filter_values, team_id=cleaned.get("team"))
