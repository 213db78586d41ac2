"""What a page says beside its figures, as the last lines of its file."""

from datetime import datetime
from typing import Protocol

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from console.usage_filters.filter_form import UsageFilters


class CompleteFigures(Protocol):
    @property
    def complete_until(self) -> datetime | None:
        """None: nothing was counted yet."""

    @property
    def min_users(self) -> int:
        """Groups of fewer are not shown; 1: it is one's own."""


def notes_of_figures(question: UsageFilters, found: CompleteFigures) -> list[str]:
    """A file's hours have their zone, its days have none."""
    notes = [_complete(found.complete_until)]
    if not question.is_hourly:
        notes.append(gettext("Dates are in UTC and inclusive."))
    if found.min_users > 1:
        said = gettext("Groups of fewer than %(min_users)s users are hidden.")
        notes.append(said % {"min_users": found.min_users})
    return notes


def _complete(until: datetime | None) -> str:
    if until is None:
        return gettext("No usage counted yet")
    at = date_format(timezone.localtime(until), "SHORT_DATETIME_FORMAT")
    return f"{gettext('Complete up to')} {at}"
