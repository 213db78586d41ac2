"""Notes about a page's figures, appended to its CSV file."""

from datetime import datetime
from typing import Protocol

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from console.usage_filters.filter_form import UsageFilters


class FigureReport(Protocol):
    """Figures of a period, with the properties that the notes mention."""

    @property
    def complete_until(self) -> datetime | None:
        """The time up to which the figures are complete; None if nothing was counted yet."""

    @property
    def min_users(self) -> int:
        """The size below which groups of users are hidden. 1: nothing is hidden."""


def notes_of_figures(usage_filters: UsageFilters, figure_report: FigureReport) -> list[str]:
    """Return up to three notes: the completeness, the dates' time zone, and hidden groups.

    Hourly figures need no note about dates: their times contain the time zone.
    """
    notes = [_completeness_note(figure_report.complete_until)]
    if not usage_filters.is_hourly:
        notes.append(gettext("Dates are in UTC and inclusive."))
    if figure_report.min_users > 1:
        text = gettext("Groups of fewer than %(min_users)s users are hidden.")
        notes.append(text % {"min_users": figure_report.min_users})
    return notes


def _completeness_note(until: datetime | None) -> str:
    if until is None:
        return gettext("No usage counted yet")
    local_until = timezone.localtime(until)
    at = f"{date_format(local_until, 'SHORT_DATETIME_FORMAT')} {local_until:%Z}"
    return f"{gettext('Complete up to')} {at}"
