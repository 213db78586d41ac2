"""Generated usage: the same for a seed, and with the patterns that its pages show."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from statistics import median
from uuid import UUID

import pytest

from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId
from tenants.base.permissions import Role
from tenants.demo.traffic.personas import make_personas
from tenants.demo.traffic.request_generator import DemoDeveloper
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent, run_events
from tenants.demo.traffic.traffic_pattern import TrafficCalendar
from tenants.demo.usage import calendar_of, day_of
from tenants.models import Outcome, UsageRecord
from tenants.usage.ingestion.row_mapping import Row

TENANT = TenantId("0199aaaa-0000-7000-8000-000000000001")
BEGINS_AT = datetime(2026, 6, 1, tzinfo=UTC)  # a Monday
STAGE = DemoTimeline(TENANT, "acme", BEGINS_AT, BEGINS_AT + timedelta(days=92, hours=12), seed=1)
CODER = DemoDeveloper(TENANT, UUID(int=1), UUID(int=2), "vscode", ("python", "go"), 300.0, 0.3)


def day(number: int, *, stage: DemoTimeline = STAGE) -> list[Row]:
    return day_of(CODER, BEGINS_AT + timedelta(days=number), calendar_of(stage), stage)


def requests(rows: list[Row]) -> list[UsageRecord]:
    return [row for row in rows if isinstance(row, UsageRecord)]


def first_token_ms(rows: list[Row]) -> float:
    return median(row.first_token_ms for row in requests(rows) if row.first_token_ms)


def hit_rate(rows: list[Row]) -> float:
    told = [row for row in requests(rows) if row.cached_tokens is not None]
    return sum(row.cached_tokens or 0 for row in told) / sum(row.prompt_tokens for row in told)


def test_a_seed_repeats_itself_and_another_is_another() -> None:
    other = DemoTimeline(TENANT, "acme", STAGE.begins_at, STAGE.now, seed=2)

    first, again, different = (
        [row.request_id for row in requests(day(3, stage=stage))] for stage in (STAGE, STAGE, other)
    )

    assert first == again
    assert first != different


def test_weekends_are_quiet() -> None:
    assert len(requests(day(5))) < len(requests(day(4))) / 4


def test_the_cache_learns() -> None:
    assert hit_rate(day(1)) < 0.7
    assert hit_rate(day(88)) > 0.85


def test_one_day_is_bad_and_sheds() -> None:
    number = (calendar_of(STAGE).find_bad_day() - BEGINS_AT).days
    bad, usual = day(number), day(number - 1)

    assert Counter(row.finish for row in requests(bad))[FinishReason.SHED] > 20
    assert Counter(row.finish for row in requests(usual))[FinishReason.SHED] < 5
    assert max(row.first_token_ms or 0 for row in requests(bad)) > 2 * first_token_ms(usual)


def test_outcomes_are_of_suggestions_and_come_after_them() -> None:
    rows = day(2)
    asked = {row.request_id: row for row in requests(rows)}

    outcomes = [row for row in rows if isinstance(row, Outcome)]

    assert outcomes
    for outcome in outcomes:
        of = asked[outcome.request_id]
        assert of.num_chars is not None
        assert outcome.chars <= of.num_chars
        assert outcome.occurred_at > of.occurred_at


def test_nothing_is_of_the_future() -> None:
    calendar = TrafficCalendar(BEGINS_AT, BEGINS_AT + timedelta(hours=9), opens_at=7)

    rows = day_of(CODER, BEGINS_AT, calendar, STAGE)

    assert requests(rows)
    assert all(row.occurred_at <= calendar.now for row in requests(rows))


@pytest.mark.parametrize("num", [8, 40, 200])
def test_every_role_is_cast_and_no_name_twice(num: int) -> None:
    cast = make_personas(num, domain="acme.example", random=STAGE.make_random("characters"))

    assert len({each.email for each in cast}) == num
    assert {each.role for each in cast} == set(Role)
    assert sum(each.role is Role.DEVELOPER for each in cast) >= 4


def test_events_happen_in_order_and_none_too_late() -> None:
    happened: list[int] = []
    events = [
        TimelineEvent(BEGINS_AT + timedelta(hours=hour), lambda now: happened.append(now.hour))
        for hour in (5, 1, 9)
    ]

    run_events(events, until=BEGINS_AT + timedelta(hours=6))

    assert happened == [1, 5]
