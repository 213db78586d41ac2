"""Latencies of completions read from the rollups nearly equal those read from the records."""

from datetime import UTC, datetime, timedelta

import pytest

from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import LatencyDay, LatencyHour, UsageRecord
from tenants.usage.reports.latency import (
    LatencyReport,
    LatencyRow,
    measure_latency,
    read_latency_rollups,
)
from tenants.usage.rollups.latency_histogram import RELATIVE_ERROR
from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion, add_outcome

DAY = datetime(2026, 11, 20, tzinfo=UTC)
NEXT_DAY = DAY + timedelta(days=1)


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def roll_up(company: Company) -> None:
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=NEXT_DAY)


def read_from_rollups(company: Company, *, by_hour: bool = False) -> LatencyReport:
    with tenant_scope(company.tenant_id):
        return read_latency_rollups(
            company.tenant_id, begins_at=DAY, ends_at=NEXT_DAY, by_hour=by_hour
        )


def read_from_records(company: Company) -> LatencyReport:
    with tenant_scope(company.tenant_id):
        records = UsageRecord.objects.filter(tenant_id=company.tenant_id)
        return measure_latency(records, begins_at=DAY, ends_at=NEXT_DAY)


def as_approximate_tuple(latency: LatencyRow) -> tuple[object, ...]:
    def approximate(value: float | None) -> object:
        # A percentile of the rollups differs from a measured time by at most RELATIVE_ERROR (one
        # percent). An exact percentile lies between two measured times, which are two percent apart
        # in the test that uses this function.
        return None if value is None else pytest.approx(value, rel=3 * RELATIVE_ERROR)

    return (
        latency.completed,
        approximate(latency.p50_ms),
        approximate(latency.p99_ms),
        latency.in_flight_at_replica,
        latency.sent,
    )


def as_tuple(latency: LatencyRow) -> tuple[object, ...]:
    return (
        latency.completed,
        latency.p50_ms,
        latency.p99_ms,
        latency.in_flight_at_replica,
        latency.sent,
    )


@pytest.mark.parametrize("by_hour", [False, True])
def test_latencies_of_rollups_match_the_records(company: Company, by_hour: bool) -> None:
    for number in range(120):
        at = NOON + timedelta(minutes=number)
        add_completion(
            company, at=at, first_token_ms=20.0 * 1.02**number, num_in_flight_at_replica=number
        )
    add_completion(
        company, at=NOON - timedelta(days=1), first_token_ms=7.0, num_in_flight_at_replica=3
    )

    roll_up(company)

    latencies, expected = read_from_rollups(company, by_hour=by_hour), read_from_records(company)
    assert as_tuple(latencies.current[Mode.INLINE]) == as_approximate_tuple(
        expected.current[Mode.INLINE]
    )
    assert as_tuple(latencies.before[Mode.INLINE]) == as_approximate_tuple(
        expected.before[Mode.INLINE]
    )
    assert latencies.load == expected.load
    assert (latencies.is_exact, expected.is_exact) == (False, True)


def test_an_incomplete_request_counts_as_sent_but_has_no_latency(company: Company) -> None:
    add_completion(
        company, finish_reason="superseded", first_token_ms=9_000.0, num_in_flight_at_replica=2
    )

    roll_up(company)

    latency = read_from_rollups(company).current[Mode.INLINE]
    assert (latency.completed, latency.sent) == (0, 1)
    assert (latency.p50_ms, latency.p99_ms) == (None, None)
    assert latency.in_flight_at_replica == 2


def test_a_late_record_is_added_to_its_hour(company: Company) -> None:
    add_completion(company, first_token_ms=10.0)
    roll_up(company)
    add_completion(company, first_token_ms=1_000.0)
    roll_up(company)

    latency = read_from_rollups(company).current[Mode.INLINE]
    hourly_latency = read_from_rollups(company, by_hour=True).current[Mode.INLINE]
    assert latency.completed == 2
    assert latency.p50_ms == pytest.approx(10, rel=RELATIVE_ERROR)  # the lower of two values
    assert as_tuple(hourly_latency) == as_tuple(latency)


def test_a_latency_of_zero_is_counted(company: Company) -> None:
    add_completion(company, first_token_ms=0.0)

    roll_up(company)

    # The histograms count every time below 0.01 ms as 0.01 ms.
    assert read_from_rollups(company).current[Mode.INLINE].p50_ms == pytest.approx(
        0.01, rel=RELATIVE_ERROR
    )


@pytest.mark.parametrize("by_hour", [False, True])
def test_display_latencies_are_those_that_clients_report(company: Company, by_hour: bool) -> None:
    for number in range(100):
        request_id = add_completion(company, first_token_ms=40.0)
        add_outcome(company, request_id, "shown", display_ms=100 + number)
    add_outcome(company, add_completion(company), "shown")  # prefetched: the user did not wait

    roll_up(company)

    latency = read_from_rollups(company, by_hour=by_hour).current[Mode.INLINE]
    assert latency.display_p50_ms == pytest.approx(150, rel=2 * RELATIVE_ERROR)
    assert latency.display_p99_ms == pytest.approx(198, rel=2 * RELATIVE_ERROR)
    # Only rollups have display latencies.
    assert read_from_records(company).current[Mode.INLINE].display_p50_ms is None


def test_another_tenants_latencies_are_not_included(company: Company) -> None:
    other_company = make_company("umbrella", GLOBEX_PEOPLE)
    add_completion(other_company, first_token_ms=10.0)
    roll_up(other_company)

    assert read_from_rollups(company).current == {}
    with tenant_scope(company.tenant_id):
        assert not LatencyDay.objects.exists()
        assert not LatencyHour.objects.exists()
