"""Generation of usage, day by day. Rows are inserted as ingestion inserts the gateways' reports."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Model

from caret.contracts.policy import Mode
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.demo.api_keys import ActiveDevelopers
from tenants.demo.traffic.outcome_generator import generate_outcomes, generate_typing_reports
from tenants.demo.traffic.request_generator import DemoDeveloper, generate_request
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent
from tenants.demo.traffic.traffic_pattern import TrafficCalendar
from tenants.models import Outcome, TypingReport, UsageRecord
from tenants.usage.ingestion.batch_numbers import allocate_batch
from tenants.usage.ingestion.bulk_insert import insert_new_rows
from tenants.usage.ingestion.key_last_used import record_key_use
from tenants.usage.ingestion.row_mapping import Row
from tenants.usage.rollups.dirty_hours import list_dirty_hours, mark_hours_dirty

_ROWS_PER_STATEMENT: Final = 5_000
# The UTC hour at which the working day begins, by slug. Globex is in America, others in Europe.
_OPENING_HOURS: Final = {"globex": 13}
_DEFAULT_OPENING_HOUR: Final = 7
_FIRST_CUT_OFF_DAY: Final = 20  # day of the month from which the hard budget is used up


def plan_usage(active_developers: ActiveDevelopers, *, spender_id: UserId) -> list[TimelineEvent]:
    """Return an event for each day. `spender_id` is the user whose hard budget is used up."""
    timeline = active_developers.company.timeline
    calendar = make_calendar(timeline)
    # Before the audit chain is signed, at 23:59 (tenants.demo.operations).
    time_of_day = timedelta(hours=23, minutes=58)

    def make_event(day: datetime) -> TimelineEvent:
        at = min(day + time_of_day, timeline.now)
        return TimelineEvent(
            at, lambda _: _generate_and_store_day(active_developers, calendar, day, spender_id)
        )

    return [make_event(day) for day in calendar.list_days()]


def make_calendar(timeline: DemoTimeline) -> TrafficCalendar:
    return TrafficCalendar(
        timeline.begins_at, timeline.now, _OPENING_HOURS.get(timeline.slug, _DEFAULT_OPENING_HOUR)
    )


def _generate_and_store_day(
    active_developers: ActiveDevelopers,
    calendar: TrafficCalendar,
    day: datetime,
    spender_id: UserId,
) -> None:
    is_budget_used_up = day.day >= _FIRST_CUT_OFF_DAY
    rows: list[Row] = []
    for user_id, developer in active_developers.by_user_id.items():
        is_cut_off = is_budget_used_up and user_id == spender_id
        developer_today = replace(developer, is_cut_off=is_cut_off)
        rows += generate_day(developer_today, day, calendar, active_developers.company.timeline)
    # Today's last outcomes may be later than now.
    past_rows = [row for row in rows if row.occurred_at <= calendar.now]
    _store_rows(active_developers.company.timeline, past_rows)


def generate_day(
    developer: DemoDeveloper, day: datetime, calendar: TrafficCalendar, timeline: DemoTimeline
) -> list[Row]:
    """Return a developer's requests, outcomes and typing reports of a day."""
    random = timeline.make_random(f"{developer.user_id}/{day:%Y-%m-%d}")
    requests: list[UsageRecord] = []
    outcomes: list[Outcome] = []
    for at in calendar.draw_moments(day, developer.pace, random):
        level = calendar.level_at(at)
        row = generate_request(developer, at, level, random)
        requests.append(row)
        outcomes += generate_outcomes(row, developer, level, random)
    inline = [row for row in requests if row.mode == Mode.INLINE and row.user_id is not None]
    return [
        *requests,
        *outcomes,
        *generate_typing_reports(developer, inline, calendar.level_at(day), random),
    ]


def _store_rows(timeline: DemoTimeline, rows: Sequence[Row]) -> None:
    with tenant_scope(timeline.tenant_id):
        completions = [row for row in rows if isinstance(row, UsageRecord)]
        if not completions:
            return
        batch = allocate_batch(timeline.tenant_id)
        for row in completions:
            row.batch = batch
        _insert_rows(UsageRecord, completions)
        _insert_rows(Outcome, [row for row in rows if isinstance(row, Outcome)])
        _insert_rows(TypingReport, [row for row in rows if isinstance(row, TypingReport)])
        # The hours of outcomes are not needed: an outcome is counted in the hour of its completion.
        mark_hours_dirty(
            timeline.tenant_id,
            list_dirty_hours(row for row in rows if not isinstance(row, Outcome)),
        )
        record_key_use({(row.key_id, row.occurred_at) for row in completions})


def _insert_rows(model: type[Model], rows: Iterable[Model]) -> None:
    remaining = list(rows)
    while remaining:
        insert_new_rows(model, remaining[:_ROWS_PER_STATEMENT])
        remaining = remaining[_ROWS_PER_STATEMENT:]
