"""Form fields for date ranges: first and last day, in the time zone of the user's preferences."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class DayField(forms.DateField):
    """An `<input type=date>`. Browsers submit it as 2026-11-22 in every locale."""

    def __init__(self, *, label: str | _StrPromise, required: bool = False) -> None:
        widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
        super().__init__(
            label=label,
            required=required,
            widget=widget,
            input_formats=["%Y-%m-%d"],
            # The limits are one day narrower than those of tenants.base.validation.time_bounds.
            # The whole day is then within those limits in every time zone.
            validators=[MinValueValidator(date(1970, 1, 2)), MaxValueValidator(date(2199, 12, 30))],
        )


class DateRangeForm(forms.Form):
    first = DayField(label=_("From"))
    last = DayField(label=_("To"))

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        first, last = cleaned.get("first"), cleaned.get("last")
        if first and last and last < first:
            self.add_error("last", gettext("The end date is before the start date."))
        return cleaned


def begin_of(day: date | None) -> datetime | None:
    """Return the first moment of the day; None if `day` is None."""
    return None if day is None else timezone.make_aware(datetime.combine(day, time.min))


def end_of(day: date | None) -> datetime | None:
    """Return the first moment after the day; None if `day` is None or `date.max`."""
    if day is None or day == date.max:
        return None
    return begin_of(day + timedelta(days=1))
