"""Metrics computed from counters. Each follows its definition; a division by zero gives None."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.models.rollup import ROLLUP_COLUMNS
from tenants.usage.reports.counters import (
    COUNTER_NAMES,
    SOURCES,
    CounterSource,
    UsageCounters,
    sum_counters,
)
from tenants.usage.reports.metric_definitions import COST, METRICS, Metric, TokenPrice, cost_metric

COUNTS = UsageCounters(
    requests=200,
    cancelled=50,
    parsed=60,
    parsed_valid=57,
    prompt_tokens=2_000_000,
    generated_tokens=10_000,
    shown=100,
    seen=80,
    accepted=30,
    partially_accepted=10,
    seen_chars=4_000,
    accepted_chars=1_000,
    accepted_tokens=500,
    checked_30=20,
    retained_30=15,
    typed_chars=3_000,
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acceptance", 0.4),  # (30 + 10) / 100
        # (30 + 10) / 80: `seen` counts suggestions that were shown for at least 750 ms or accepted.
        ("completion_acceptance", 0.5),
        ("weighted_acceptance", 0.25),  # 1,000 / 4,000
        ("persistence_30", 0.75),  # 15 / 20
        ("persistence_1800", None),  # nothing was checked after 1,800 s
        ("completed_code", 0.25),  # 1,000 / (1,000 + 3,000)
        ("validity", 0.95),  # 57 / 60
        ("cancellation", 0.25),  # 50 / 200
    ],
)
def test_each_metric_equals_its_definition(name: str, value: float | None) -> None:
    (metric,) = (metric for metric in METRICS if metric.name == name)

    assert metric.compute(COUNTS) == value


@pytest.mark.parametrize("metric", METRICS, ids=[metric.name for metric in METRICS])
def test_empty_counters_have_no_metrics(metric: Metric) -> None:
    assert metric.compute(UsageCounters()) is None


def test_the_share_of_completed_code_needs_typing_reports() -> None:
    (metric,) = (metric for metric in METRICS if metric.name == "completed_code")

    assert metric.compute(UsageCounters(accepted_chars=10)) is None


def test_accepted_tokens_bear_the_cost_of_all_tokens() -> None:
    metric = cost_metric(TokenPrice(prompt_micros=100_000, generated_micros=1_000_000))

    # The prices are for a million tokens: 200,000 micros for the prompts, and 10,000 for generated
    # tokens. This is the cost of 500 accepted tokens. The metric is the cost of a thousand.
    assert metric.compute(COUNTS) == 420_000
    assert metric.compute(UsageCounters(prompt_tokens=5)) is None
    assert metric.name == COST
    assert cost_metric(None).compute(COUNTS) is None  # without a price


def test_numbers_of_the_server_and_of_the_client_are_distinguished() -> None:
    assert SOURCES["generated_tokens"] is CounterSource.SERVER
    assert SOURCES["shown"] is SOURCES["typed_chars"] is CounterSource.CLIENT
    server_metrics = {metric.name for metric in METRICS if metric.source is CounterSource.SERVER}
    assert server_metrics == {"validity", "cancellation"}


def test_metric_names_are_unique() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)


@given(st.lists(st.integers(0, 10**9), max_size=5))
def test_counters_add_up(values: list[int]) -> None:
    added = sum_counters(UsageCounters(**dict.fromkeys(COUNTER_NAMES, value)) for value in values)

    assert {getattr(added, name) for name in COUNTER_NAMES} == {sum(values)}


def test_each_counter_has_a_column() -> None:
    assert tuple(field.name for field in fields(UsageCounters)) == ROLLUP_COLUMNS
