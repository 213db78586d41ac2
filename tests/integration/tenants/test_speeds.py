"""Latencies of completions from the rollups match the records within one percent."""

from datetime import UTC, datetime, timedelta

import pytest

from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import LatencyDay, LatencyHour, UsageRecord
from tenants.usage.reports.latency import LatencyReport, LatencyRow, add_speeds, read_speeds
from tenants.usage.rollups.latency_histogram import RELATIVE_ERROR
from tenants.usage.rollups.operations import roll_up
from tests.fixtures.companies import GLOBEX, Company, make_company
from tests.integration.tenants.records import NOON, add_completion

DAY = datetime(2026, 11, 20, tzinfo=UTC)
NEXT_DAY = DAY + timedelta(days=1)


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX)


def run(company: Company) -> None:
    roll_up(tenant_id=company.tenant_id, arrived_until=NEXT_DAY)


def added(company: Company, *, by_hour: bool = False) -> LatencyReport:
    with tenant_scope(company.tenant_id):
        return add_speeds(company.tenant_id, begins_at=DAY, ends_at=NEXT_DAY, by_hour=by_hour)


def measured(company: Company) -> LatencyReport:
    with tenant_scope(company.tenant_id):
        records = UsageRecord.objects.filter(tenant_id=company.tenant_id)
        return read_speeds(records, begins_at=DAY, ends_at=NEXT_DAY)


def nearly(speed: LatencyRow) -> tuple[object, ...]:
    def about(value: float | None) -> object:
        # Sketch buckets grow by two percent, and exact percentiles lie between two times.
        return None if value is None else pytest.approx(value, rel=3 * RELATIVE_ERROR)

    return (speed.completed, about(speed.p50_ms), about(speed.p99_ms), speed.at_replica, speed.sent)


def told(speed: LatencyRow) -> tuple[object, ...]:
    return (speed.completed, speed.p50_ms, speed.p99_ms, speed.at_replica, speed.sent)


@pytest.mark.parametrize("by_hour", [False, True])
def test_roll_ups_say_what_the_records_say(company: Company, by_hour: bool) -> None:
    for number in range(120):
        at = NOON + timedelta(minutes=number)
        add_completion(
            company, at=at, first_token_ms=20.0 * 1.02**number, num_in_flight_at_replica=number
        )
    add_completion(
        company, at=NOON - timedelta(days=1), first_token_ms=7.0, num_in_flight_at_replica=3
    )

    run(company)

    found, expected = added(company, by_hour=by_hour), measured(company)
    assert told(found.now[Mode.INLINE]) == nearly(expected.now[Mode.INLINE])
    assert told(found.before[Mode.INLINE]) == nearly(expected.before[Mode.INLINE])
    assert found.load == expected.load
    assert (found.is_exact, expected.is_exact) == (False, True)


def test_what_did_not_complete_has_no_first_token_but_was_sent(company: Company) -> None:
    add_completion(company, finish="superseded", first_token_ms=9_000.0, num_in_flight_at_replica=2)

    run(company)

    found = added(company).now[Mode.INLINE]
    assert told(found) == (0, None, None, 2, 1)


def test_a_late_record_joins_its_hour(company: Company) -> None:
    add_completion(company, first_token_ms=10.0)
    run(company)
    add_completion(company, first_token_ms=1_000.0)
    run(company)

    found = added(company).now[Mode.INLINE]
    assert found.completed == 2
    assert found.p50_ms == pytest.approx(10, rel=RELATIVE_ERROR)
    assert told(added(company, by_hour=True).now[Mode.INLINE]) == told(found)


def test_a_time_of_nothing_is_a_time(company: Company) -> None:
    add_completion(company, first_token_ms=0.0)

    run(company)

    assert added(company).now[Mode.INLINE].p50_ms == pytest.approx(0.01, rel=RELATIVE_ERROR)


def test_a_neighbours_are_not_in_it(company: Company) -> None:
    other = make_company("umbrella", GLOBEX)
    add_completion(other, first_token_ms=10.0)
    run(other)

    assert added(company).now == {}
    with tenant_scope(company.tenant_id):
        assert not LatencyDay.objects.exists()
        assert not LatencyHour.objects.exists()
