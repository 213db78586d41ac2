"""The bounds of accepted times and dates."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.base.errors import InvalidValue
from tenants.base.validation.time_bounds import validate_date, validate_datetime

_OFFSETS = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)


@given(st.datetimes(timezones=_OFFSETS))
def test_an_accepted_time_can_be_shifted_by_ten_years(moment: datetime) -> None:
    try:
        validate_datetime("since", moment)
    except InvalidValue:
        return

    # Near the ends of Python's calendar, this would raise OverflowError.
    ten_years = timedelta(days=3_660)
    assert moment.astimezone(UTC) - ten_years < moment < moment.astimezone(UTC) + ten_years


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "1970-01-01T00:00:00+00:01",
        "2199-12-31T23:59:59-00:01",
    ],
)
def test_a_time_that_is_beyond_the_bounds_in_utc_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValue):
        validate_datetime("since", datetime.fromisoformat(text))


@pytest.mark.parametrize("text", ["1970-01-01T00:00:00Z", "2199-12-31T23:59:59.999999Z"])
def test_the_bounds_themselves_are_accepted(text: str) -> None:
    validate_datetime("since", datetime.fromisoformat(text))
    validate_date("day", datetime.fromisoformat(text).date())


def test_a_missing_time_is_accepted() -> None:
    validate_datetime("since", None)


@pytest.mark.parametrize("day", [date.min, date(1969, 12, 31), date(2200, 1, 1), date.max])
def test_dates_have_the_same_bounds(day: date) -> None:
    with pytest.raises(InvalidValue) as rejected:
        validate_date("starts_on", day)

    assert rejected.value.field == "starts_on"
