"""The chart of spending over time."""

from collections.abc import Sequence

from django.utils.formats import date_format
from django.utils.translation import gettext

from console.charts.chart import Chart, Series, Time, Unit, bars
from console.money_format import amount
from console.views.billing.presenters import SpendRow
from tenants.base.money import MICROS, Currency


def spent_chart(spent: Sequence[SpendRow], currency: Currency, *, is_by_month: bool) -> Chart:
    name = "YEAR_MONTH_FORMAT" if is_by_month else "MONTH_DAY_FORMAT"
    series = [
        Series(gettext("Seats"), [each.seats_micros / MICROS for each in spent]),
        Series(gettext("Fast tier"), [each.fast_micros / MICROS for each in spent]),
        Series(gettext("Quality tier"), [each.quality_micros / MICROS for each in spent]),
    ]
    times = [Time(date_format(each.begins_on, name)) for each in spent]
    return bars(gettext("Spent over time"), times, series, _unit(currency))


def _unit(currency: Currency) -> Unit:
    def write(value: float) -> str:
        return amount(round(value * MICROS), currency)

    return Unit(currency.value, write, write)
