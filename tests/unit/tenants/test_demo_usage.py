"""Generated usage of a demo tenant.

It depends only on its seed, and has patterns for the console's pages to show.
"""

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
from tenants.demo.usage import generate_day, make_calendar
from tenants.models import Outcome, UsageRecord
from tenants.usage.ingestion.row_mapping import Row

TENANT = TenantId("0199aaaa-0000-7000-8000-000000000001")
BEGINS_AT = datetime(2026, 6, 1, tzinfo=UTC)  # a Monday
TIMELINE = DemoTimeline(TENANT, "acme", BEGINS_AT, BEGINS_AT + timedelta(days=92, hours=12), seed=1)
CODER = DemoDeveloper(
    TENANT,
    user_id=UUID(int=1),
    key_id=UUID(int=2),
    editor="vscode",
    languages=("python", "go"),
    pace=300.0,
    acceptance_share=0.3,
)


def day(number: int, *, timeline: DemoTimeline = TIMELINE) -> list[Row]:
    """Return the rows of a day. Day 0 is the Monday on which the timeline begins."""
    return generate_day(
        CODER, BEGINS_AT + timedelta(days=number), make_calendar(timeline), timeline
    )


def requests(rows: list[Row]) -> list[UsageRecord]:
    return [row for row in rows if isinstance(row, UsageRecord)]


def median_first_token_ms(rows: list[Row]) -> float:
    return median(row.first_token_ms for row in requests(rows) if row.first_token_ms)


def hit_rate(rows: list[Row]) -> float:
    with_cache_info = [row for row in requests(rows) if row.cached_tokens is not None]
    return sum(row.cached_tokens or 0 for row in with_cache_info) / sum(
        row.prompt_tokens for row in with_cache_info
    )


def test_usage_depends_only_on_the_seed() -> None:
    other_timeline = DemoTimeline(TENANT, "acme", TIMELINE.begins_at, TIMELINE.now, seed=2)

    first, same_requests, different = (
        [row.request_id for row in requests(day(3, timeline=timeline))]
        for timeline in (TIMELINE, TIMELINE, other_timeline)
    )

    assert first == same_requests
    assert first != different


def test_weekends_have_little_usage() -> None:
    friday, saturday = day(4), day(5)

    assert len(requests(saturday)) < len(requests(friday)) / 4


def test_the_hit_rate_of_the_prefix_cache_rises() -> None:
    assert hit_rate(day(1)) < 0.7
    assert hit_rate(day(88)) > 0.85


def test_one_day_is_slow_and_sheds_requests() -> None:
    number = (make_calendar(TIMELINE).find_overloaded_day() - BEGINS_AT).days
    slow_day, usual_day = day(number), day(number - 1)

    num_shed, usual_num_shed = (
        Counter(row.finish_reason for row in requests(rows))[FinishReason.SHED]
        for rows in (slow_day, usual_day)
    )
    slowest_first_token_ms = max(row.first_token_ms or 0 for row in requests(slow_day))
    assert num_shed > 20
    assert usual_num_shed < 5
    assert slowest_first_token_ms > 2 * median_first_token_ms(usual_day)


def test_outcomes_follow_their_suggestions() -> None:
    rows = day(2)
    requested = {row.request_id: row for row in requests(rows)}

    outcomes = [row for row in rows if isinstance(row, Outcome)]

    assert outcomes
    for outcome in outcomes:
        suggestion = requested[outcome.request_id]
        assert suggestion.num_chars is not None
        assert outcome.chars <= suggestion.num_chars
        assert outcome.occurred_at > suggestion.occurred_at


def test_no_usage_is_in_the_future() -> None:
    calendar = TrafficCalendar(BEGINS_AT, BEGINS_AT + timedelta(hours=9), opens_at=7)

    rows = generate_day(CODER, BEGINS_AT, calendar, TIMELINE)

    assert requests(rows)
    assert all(row.occurred_at <= calendar.now for row in requests(rows))


@pytest.mark.parametrize("num_users", [8, 40, 200])
def test_every_role_occurs_and_addresses_are_unique(num_users: int) -> None:
    random = TIMELINE.make_random("characters")

    personas = make_personas(num_users, domain="acme.example", random=random)

    assert len({persona.email for persona in personas}) == num_users
    assert {persona.role for persona in personas} == set(Role)
    assert sum(persona.role is Role.DEVELOPER for persona in personas) >= 4


def test_events_run_in_order_up_to_the_end() -> None:
    happened: list[int] = []
    events = [
        TimelineEvent(BEGINS_AT + timedelta(hours=hour), lambda now: happened.append(now.hour))
        for hour in (5, 1, 9)
    ]

    run_events(events, until=BEGINS_AT + timedelta(hours=6))

    assert happened == [1, 5]
