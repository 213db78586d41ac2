"""Notes about a page's figures, appended to its CSV file."""

from datetime import datetime
from typing import Protocol

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from console.usage_filters.filter_form import UsageFilters


class CompleteFigures(Protocol):
    @property
    def complete_until(self) -> datetime | None:
        """The time up to which the figures are complete; None if nothing was counted yet."""

    @property
    def min_users(self) -> int:
        """The minimum group size; smaller groups are hidden. 1 for the user's own figures."""


def notes_of_figures(usage_filters: UsageFilters, usage_figures: CompleteFigures) -> list[str]:
    """Return the notes. The time includes its time zone. Dates do not, so a note names it."""
    notes = [_completeness_note(usage_figures.complete_until)]
    if not usage_filters.is_hourly:
        notes.append(gettext("Dates are in UTC and inclusive."))
    if usage_figures.min_users > 1:
        text = gettext("Groups of fewer than %(min_users)s users are hidden.")
        notes.append(text % {"min_users": usage_figures.min_users})
    return notes


def _completeness_note(until: datetime | None) -> str:
    if until is None:
        return gettext("No usage counted yet")
    local_until = timezone.localtime(until)
    at = f"{date_format(local_until, 'SHORT_DATETIME_FORMAT')} {local_until:%Z}"
    return f"{gettext('Complete up to')} {at}"
