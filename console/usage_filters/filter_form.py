"""The period and the filters in a usage page's URL.

    ?range=7d&language=python          ?range=custom&start=2026-11-01&end=2026-11-15

The last 24 hours are whole clock hours. Longer periods are whole UTC days, as in rollups, reports
and exports, and include their last day.
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

HOURS: Final = "24h"
CUSTOM: Final = "custom"
_DAYS: Final = {"7d": 7, "30d": 30, "90d": 90}
RANGES: Final[Mapping[str, str | Promise]] = {
    HOURS: _("24 hours"),
    "7d": _("7 days"),
    "30d": _("30 days"),
    "90d": _("90 days"),
    CUSTOM: _("Custom"),
}
_DEFAULT: Final = "7d"
_MAX_NAME: Final = 100
UNKNOWN: Final = "-"  # in URLs: the client sent no value, stored as ""
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
    language = forms.CharField(max_length=_MAX_NAME, required=False)
    editor = forms.CharField(max_length=_MAX_NAME, required=False)
    model = forms.CharField(max_length=_MAX_NAME, required=False)
    variant = forms.CharField(max_length=_MAX_NAME, required=False)
    team = forms.UUIDField(required=False)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("range") == CUSTOM and not self.errors:
            self._check_days(cleaned.get("start"), cleaned.get("end"))
        return cleaned

    def _check_days(self, start: date | None, end: date | None) -> None:
        end = end or datetime.now(UTC).date()
        start = start or end
        if end < start:
            self.add_error("end", _("The end is before the start."))
        elif (end - start).days >= MAX_DAYS:
            self.add_error("end", _("Choose a period of up to one year."))
        elif not 1900 <= start.year <= 9000 or end.year > 9000:  # so that no date overflows later
            self.add_error("start", _("There is no data for this period."))


@dataclass(frozen=True, slots=True)
class UsageFilterOption:
    value: str
    title: str
    is_selected: bool


@dataclass(frozen=True, slots=True)
class UsageFilter:
    name: str
    title: str
    choices: list[UsageFilterOption]
    default_title: str = ""  # of the empty choice; "": all


@dataclass(frozen=True, slots=True)
class RangeLink:
    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """The parsed and checked parameters of the URL."""

    form: UsageFilterForm
    report_query: ReportQuery
    range: str
    parameters: Mapping[str, str]  # the parameters that are set

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
        """Return the parameters for links to other pages with the same filters."""
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
        parameters = {name: text for name, text in self.parameters.items() if name not in _LABELS}
        return f"?{urlencode(parameters)}"

    def list_filters(
        self, choices: Mapping[str, list[str]], teams: Mapping[str, str]
    ) -> list[UsageFilter]:
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
        options = [
            (value or UNKNOWN, display_name(name, value) or str(_("unknown"))) for value in values
        ]
        if selected and selected not in {value for value, _title in options}:
            options.append((selected, display_name(name, selected)))
        return [UsageFilterOption(value, title, value == selected) for value, title in options]

    def with_filter(self, **values: str) -> str:
        return self._with(**{name: value or UNKNOWN for name, value in values.items()})

    def _with(self, **changes: str) -> str:
        return urlencode({**self.parameters, **changes})


def read_usage_filters(request: HttpRequest, *, now: datetime) -> UsageFilters:
    """Return the filters of the URL, or the default period if they are invalid.

    The form then contains the errors.
    """
    form = UsageFilterForm(request.GET)
    is_valid = form.is_valid()
    cleaned = form.cleaned_data if is_valid else {}
    range_name = cleaned.get("range") or _DEFAULT
    parameters = {
        name: text
        for name in form.fields
        if (text := request.GET.get(name, "").strip()) and is_valid
    }
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
    report_query = usage_filters.report_query
    return ReportQuery(
        report_query.start,
        report_query.end,
        group_by,
        report_query.filter,
        report_query.hours_until,
    )


def _to_query(cleaned: Mapping[str, Any], range_name: str, now: datetime) -> ReportQuery:
    today = now.astimezone(UTC).date()
    tomorrow = today + timedelta(days=1)
    start = tomorrow - timedelta(days=_DAYS.get(range_name, _DAYS[_DEFAULT]))
    end = tomorrow
    if range_name == CUSTOM:
        end = cleaned["end"] + timedelta(days=1) if cleaned.get("end") else tomorrow
        start = cleaned.get("start") or min(start, end - timedelta(days=1))
    if range_name == HOURS:
        return ReportQuery(today, tomorrow, filter=_to_filter(cleaned), hours_until=now)
    return ReportQuery(start, end, filter=_to_filter(cleaned))


def _to_filter(cleaned: Mapping[str, Any]) -> ReportFilter:
    values = {name: cleaned.get(name) or None for name in COLUMNS}
    filter_values = {name: "" if value == UNKNOWN else value for name, value in values.items()}
    return ReportFilter(**filter_values, team_id=cleaned.get("team"))
