"""The notation of numbers on the operators' pages."""

import pytest
from django.utils import translation

from console.templatetags.operators import count, milliseconds, percent, unlocalized, whole_percent


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (0.0, "0.0%"), (0.93476, "93.5%"), (1.0, "100.0%")]
)
def test_shares_are_rounded_percentages(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (None, "–"),
        (3.571, "3.6 ms"),
        (99.96, "100.0 ms"),
        (214.6, "215 ms"),
        (12_345.0, "12,345 ms"),
    ],
)
def test_only_short_times_have_a_decimal(value_ms: float | None, text: str) -> None:
    assert milliseconds(value_ms) == text


def test_counts_are_grouped_in_the_readers_language() -> None:
    with translation.override("de"):
        assert count(1_234_567.891, 2) == "1.234.567,89"
    assert count(None) == "–"


@pytest.mark.parametrize(("share", "width"), [(-1.0, 0), (0.5, 50), (3.0, 100)])
def test_a_meter_shows_at_most_100_percent(share: float, width: int) -> None:
    assert whole_percent(share) == width


def test_numbers_for_scripts_are_not_localized() -> None:
    with translation.override("de"):
        assert unlocalized(0.05) == "0.05"
