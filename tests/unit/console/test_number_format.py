"""Percentages, numbers on axes, changes and money, in each language's notation."""

import pytest
from django.utils.translation import override

from console.texts.money_format import format_budget_amount
from console.usage_filters.number_format import (
    describe_change,
    format_axis_share,
    format_share,
    format_short_count,
    share_noise,
)


def test_english_percentages_have_no_space() -> None:
    with override("en"):
        assert (format_share(0.286), format_axis_share(0.3)) == ("28.6%", "30%")


def test_german_percentages_have_a_no_break_space() -> None:
    with override("de"):
        assert (format_share(0.286), format_axis_share(0.3)) == (
            "28,6\N{NO-BREAK SPACE}%",
            "30\N{NO-BREAK SPACE}%",
        )


@pytest.mark.parametrize(
    ("value", "text"), [(12_000, "12k"), (12_960, "13k"), (12_500, "12.5k"), (3_400_000, "3.4M")]
)
def test_a_number_on_an_axis_has_no_decimal_that_is_zero(value: float, text: str) -> None:
    with override("en"):
        assert format_short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.9, "999.9"), (999.97, "1k"), (999_900, "999.9k"), (999_960, "1M"), (999_999, "1M")],
)
def test_a_number_that_is_rounded_up_to_the_next_unit_is_shown_in_that_unit(
    value: float, text: str
) -> None:
    with override("en"):
        assert format_short_count(value) == text


def test_a_change_is_shown_in_percent_or_in_points() -> None:
    with override("en"):
        change = describe_change(106, 100)
        change_of_share = describe_change(0.5, 0.25, is_share=True)

    assert change is not None
    assert change_of_share is not None
    assert (change.text, change_of_share.text) == ("+6.0%", "+25.0 points")


@pytest.mark.parametrize(
    ("num_observations", "tone"), [(100, ""), (10_000, "good")], ids=["few", "many"]
)
def test_a_change_is_good_only_if_it_is_too_large_for_chance(
    num_observations: int, tone: str
) -> None:
    with override("en"):
        noise = share_noise(0.32, 0.30, [num_observations, num_observations])
        change = describe_change(0.32, 0.30, is_share=True, better="more", noise=noise)

    assert change is not None
    assert (change.text, change.tone, change.is_noise) == ("+2.0 points", tone, tone == "")


@pytest.mark.parametrize(
    ("spent_micros", "limit_micros", "expected"),
    [(335_303, 260_000, "€0.34"), (5_300, 10_000, "€0.0053"), (0, 10_000, "€0.00")],
)
def test_only_spending_of_a_tiny_budget_shows_parts_of_a_cent(
    spent_micros: int, limit_micros: int, expected: str
) -> None:
    with override("en"):
        assert format_budget_amount(spent_micros, limit_micros, "EUR") == expected


def test_german_money_has_german_separators_and_the_symbol_at_the_end() -> None:
    with override("de"):
        amount = format_budget_amount(1_234_500_000, 2_000_000_000, "EUR")

    assert amount == "1.234,50\N{NO-BREAK SPACE}€"
