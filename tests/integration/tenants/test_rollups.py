"""Hourly and daily rollups match their records, however often and late records are counted."""

import multiprocessing
import os
import signal
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from threading import Thread
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM, OutcomeEvent
from caret.foundation.clock import from_unix_ms, to_unix_ms
from caret.foundation.ids import uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import DirtyHour, Outcome, TypingReport, UsageDay, UsageHour
from tenants.models.rollup import SERVICE_KEYS_USER_ID
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.privacy.retention.purge import purge_data_class
from tenants.usage.ingestion.operations import ingest_all_entries
from tenants.usage.ingestion.redis_stream import UsageStream
from tenants.usage.reports.counters import COUNTER_NAMES, UsageCounters
from tenants.usage.rollups import operations as rolling
from tenants.usage.rollups.dirty_hours import list_dirty_hours
from tenants.usage.tasks import roll_up_usage
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion, add_outcome, insert
from tests.integration.tenants.test_ingest import completion, outcome, send

NOW = NOON + timedelta(days=1)


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def read_rollups(company: Company, table: Any = UsageDay) -> list[dict[str, Any]]:
    with tenant_scope(company.tenant_id):
        return list(table.objects.order_by("starts_at", "user_id", "language").values())


def read_single_rollup(company: Company, table: Any = UsageDay) -> UsageCounters:
    (row,) = read_rollups(company, table)
    return UsageCounters(**{name: row[name] for name in COUNTER_NAMES})


def roll_up(company: Company) -> int:
    return rolling.roll_up_tenant(tenant_id=company.tenant_id, arrived_until=NOW)


def test_completions_are_counted_by_finish_reason(company: Company) -> None:
    for finish_reason in ("stop", "length", "cancelled", "superseded", "shed", "filtered", "error"):
        add_completion(company, finish_reason=finish_reason)

    roll_up(company)

    rollup = read_single_rollup(company)
    assert (rollup.requests, rollup.completed, rollup.cancelled) == (7, 2, 2)
    assert (rollup.shed, rollup.filtered, rollup.errors, rollup.suggestions) == (1, 1, 1, 2)
    assert (rollup.prompt_tokens, rollup.cached_tokens) == (700, 560)
    assert read_single_rollup(company, UsageHour) == rollup


def test_usage_is_grouped_by_user_language_and_variant(company: Company) -> None:
    add_completion(company)
    add_completion(company, language="go")
    add_completion(company, user_id=None, variant="b")

    roll_up(company)

    keys = {(str(row["user_id"]), row["language"], row["variant"]) for row in read_rollups(company)}
    developer = company.developer.user_id
    users = {(developer, "python", ""), (developer, "go", "")}
    assert keys == users | {(str(SERVICE_KEYS_USER_ID), "python", "b")}


def test_outcomes_are_counted_with_their_completions(company: Company) -> None:
    accepted, partial, hidden_early, ignored = (add_completion(company) for _ in range(4))
    add_outcome(company, accepted, "shown")
    add_outcome(company, accepted, "accepted", after_ms=300)
    add_outcome(company, partial, "partially_accepted", chars=10, lines=1)
    add_outcome(company, partial, "partially_accepted", chars=10, lines=1)
    add_outcome(company, hidden_early, "rejected", after_ms=200)  # less than 750 ms: not seen
    add_outcome(company, ignored, "rejected", after_ms=750)

    roll_up(company)

    rollup = read_single_rollup(company)
    # Each suggestion has 40 characters, 2 lines and 10 tokens. Of `partial`, 20, 2 and 5 count.
    assert (rollup.shown, rollup.seen, rollup.rejected) == (4, 3, 2)
    assert (rollup.accepted, rollup.partially_accepted) == (1, 1)
    assert (rollup.shown_chars, rollup.seen_chars, rollup.accepted_chars) == (160, 120, 60)
    assert (rollup.accepted_lines, rollup.accepted_tokens) == (4, 15)


def test_an_outcome_reported_by_two_gateways_counts_once(company: Company) -> None:
    request_id = add_completion(company)
    for _ in range(2):
        add_outcome(company, request_id, "accepted")

    roll_up(company)

    rollup = read_single_rollup(company)
    assert (rollup.shown, rollup.accepted, rollup.accepted_chars) == (1, 1, 40)


def test_persistence_is_counted_in_the_hour_of_its_completion(company: Company) -> None:
    request_id = add_completion(company)
    later_at = NOON + timedelta(minutes=31)
    add_outcome(company, request_id, "accepted")
    add_outcome(company, request_id, "persisted", span_s=30, edited_ratio=0.33)  # just retained
    add_outcome(
        company, request_id, "persisted", span_s=1_800, edited_ratio=0.34, occurred_at=later_at
    )

    roll_up(company)

    rollup = read_single_rollup(company, UsageHour)
    assert (rollup.checked_30, rollup.retained_30) == (1, 1)
    assert (rollup.checked_1800, rollup.retained_1800) == (1, 0)


def test_typing_reports_join_or_create_their_group(company: Company) -> None:
    add_completion(company, model="", variant=None)
    for language in ("python", "go"):
        insert(
            company,
            TypingReport(
                tenant_id=company.tenant_id,
                occurred_at=NOON,
                report_id=uuid.uuid4(),
                user_id=company.developer.user_id,
                language=language,
                editor="zed",
                chars=70,
            ),
        )

    roll_up(company)

    groups = [
        (row["language"], row["requests"], row["typed_chars"]) for row in read_rollups(company)
    ]
    assert groups == [("go", 0, 70), ("python", 1, 70)]


def test_parser_results_are_counted_if_available(company: Company) -> None:
    withheld: dict[str, Any] = {"filter_reason": "syntax", "finish_reason": "filtered"}
    for fields in ({"filter_reason": ""}, withheld, {"finish_reason": "cancelled"}):
        add_completion(company, **fields, is_syntax_checked=True)
    add_completion(company, is_syntax_checked=False)

    roll_up(company)

    rollup = read_single_rollup(company)
    assert (rollup.parsed, rollup.parsed_valid) == (2, 1)


def test_counting_an_hour_again_changes_nothing(company: Company) -> None:
    add_completion(company)
    roll_up(company)
    before = read_rollups(company), read_rollups(company, UsageHour)

    end = NOON + timedelta(hours=1)
    rolling.mark_period_dirty(tenant_id=company.tenant_id, start=NOON, end=end)

    assert roll_up(company) == 1  # one day is counted
    assert (read_rollups(company), read_rollups(company, UsageHour)) == before
    assert roll_up(company) == 0


def test_a_late_record_is_added_to_the_rollups(company: Company) -> None:
    add_completion(company)
    roll_up(company)

    add_completion(company, at=NOON - timedelta(hours=3))
    roll_up(company)

    assert read_single_rollup(company).requests == 2
    assert [row["requests"] for row in read_rollups(company, UsageHour)] == [1, 1]


def test_an_outcome_ingested_before_its_completion_is_counted_with_it(company: Company) -> None:
    request_id = uuid7(now_ms=to_unix_ms(NOON))
    add_outcome(company, request_id, "accepted")
    roll_up(company)
    assert read_rollups(company) == []

    add_completion(company, request_id=request_id)
    roll_up(company)

    assert read_single_rollup(company).accepted == 1


def test_an_hour_keeps_its_counts_after_its_records_are_deleted(company: Company) -> None:
    """The test moves the counted hour to a time without records."""
    add_completion(company)
    roll_up(company)
    with tenant_scope(company.tenant_id):
        UsageHour.objects.update(starts_at=NOON.replace(minute=0) - timedelta(days=30))
        UsageDay.objects.all().delete()

    start, end = NOON - timedelta(days=30), NOON - timedelta(days=29, hours=23)
    rolling.mark_period_dirty(tenant_id=company.tenant_id, start=start, end=end)
    roll_up(company)

    assert [row["requests"] for row in read_rollups(company, UsageHour)] == [1]


def test_a_partly_purged_hour_keeps_its_counts(company: Company) -> None:
    hour = NOON.replace(minute=0) - timedelta(days=450)
    add_completion(company, at=hour + timedelta(minutes=10))
    late = add_completion(company, at=hour + timedelta(minutes=50))
    roll_up(company)
    now = hour + timedelta(minutes=30, days=DATA_CLASSES[DataClass.USAGE].default_days)
    purged = purge_data_class(tenant_id=company.tenant_id, data_class=DataClass.USAGE, now=now)

    add_outcome(company, late, "accepted")  # this marks the hour as dirty
    roll_up(company)

    assert purged == 1
    assert [row["requests"] for row in read_rollups(company, UsageHour)] == [2]
    assert [row["requests"] for row in read_rollups(company)] == [2]


def test_an_old_hour_that_was_never_counted_is_counted(company: Company) -> None:
    hour = NOON.replace(minute=0) - timedelta(days=450)
    add_completion(company, at=hour)
    now = hour + timedelta(minutes=30, days=DATA_CLASSES[DataClass.USAGE].default_days)
    purge_data_class(tenant_id=company.tenant_id, data_class=DataClass.USAGE, now=now)

    add_completion(company, at=hour + timedelta(minutes=50))  # from a gateway's old journal
    roll_up(company)

    assert [row["requests"] for row in read_rollups(company, UsageHour)] == [1]


def test_another_tenants_records_are_not_counted(company: Company) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)
    add_completion(company)

    roll_up(other_company)
    roll_up(company)

    assert read_rollups(other_company) == []
    assert read_single_rollup(company).requests == 1


def test_rollups_are_complete_until_the_longest_delay_before_arrival(company: Company) -> None:
    add_completion(company)

    roll_up(company)

    with tenant_scope(company.tenant_id):
        assert rolling.find_complete_until(company.tenant_id) == NOW - rolling.MAX_RECORD_DELAY


def test_the_completeness_time_never_moves_back(company: Company) -> None:
    roll_up(company)

    rolling.roll_up_tenant(tenant_id=company.tenant_id, arrived_until=NOW - timedelta(hours=9))

    with tenant_scope(company.tenant_id):
        assert rolling.find_complete_until(company.tenant_id) == NOW - rolling.MAX_RECORD_DELAY


def test_the_arrival_time_excludes_pending_entries(company: Company) -> None:
    stream = UsageStream(connect_to_redis(), consumer="test", claim_after_ms=0)
    ingest_all_entries(stream)
    now = timezone.now() + timedelta(hours=1)
    assert stream.find_arrived_until(now=now) == now
    entry_id = connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: b"\xc1"})  # "<ms>-<number>"

    arrived_until = stream.find_arrived_until(now=now)

    assert arrived_until == from_unix_ms(int(bytes(entry_id).partition(b"-")[0]))  # type: ignore[arg-type]
    ingest_all_entries(stream)  # rejects the invalid entry, so that it does not affect later tests


def test_the_task_rolls_up_ingested_records(company: Company) -> None:
    now_ms = to_unix_ms(timezone.now())
    record = completion(company, request_id=str(uuid7(now_ms=now_ms)), occurred_at_ms=now_ms)
    accepted = msgspec.structs.replace(outcome(company), request_id=record.request_id)
    send(record, accepted, record)  # the completion is delivered twice
    ingest_all_entries(UsageStream(connect_to_redis(), consumer="test", claim_after_ms=0))

    roll_up_usage()

    rollup = read_single_rollup(company)
    assert (rollup.requests, rollup.accepted) == (1, 1)


def test_a_killed_rollup_leaves_consistent_counts(company: Company) -> None:
    for number in range(12):  # on four days
        add_completion(company, at=NOON - timedelta(hours=number * 6))
    forking = multiprocessing.get_context("fork")
    process = forking.Process(target=_roll_up_until_killed, args=[company])
    connections.close_all()

    process.start()
    process.join(timeout=300)

    assert process.exitcode == -signal.SIGKILL
    hours, days = read_rollups(company, UsageHour), read_rollups(company)
    assert 0 < len(days) < 4
    assert sum(row["requests"] for row in hours) == sum(row["requests"] for row in days)
    roll_up(company)
    assert sum(row["requests"] for row in read_rollups(company)) == 12
    with tenant_scope(company.tenant_id):
        assert not DirtyHour.objects.exists()


def _roll_up_until_killed(company: Company) -> None:
    """Roll up, and kill the process in the middle of the second day: after its first hour."""
    count_hour: Callable[..., None] = rolling._count_hour
    days: set[Any] = set()

    def count(cursor: Any, tenant_id: Any, hour: datetime) -> None:
        days.add(hour.date())
        count_hour(cursor, tenant_id, hour)
        if len(days) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # until the signal arrives

    rolling._count_hour = count
    roll_up(company)


def test_a_record_inserted_during_a_rollup_is_counted_by_the_next(company: Company) -> None:
    add_completion(company)
    counting = Thread(target=_roll_up_in_thread, args=[company])
    with tenant_scope(company.tenant_id):
        add_completion(company)  # is committed after the rollup
        counting.start()
        counting.join()

    before = read_single_rollup(company).requests
    roll_up(company)

    assert (before, read_single_rollup(company).requests) == (1, 2)


def _roll_up_in_thread(company: Company) -> None:
    roll_up(company)
    connections.close_all()


def test_the_rollup_covers_every_tenant(company: Company) -> None:
    companies = [company, make_company("hooli", GLOBEX_PEOPLE)]
    for tenant in companies:
        add_completion(tenant)
    assert rolling.roll_up_all_tenants(arrived_until=NOW) >= len(companies)

    assert [read_single_rollup(tenant).requests for tenant in companies] == [1, 1]


def test_an_outcome_whose_request_id_contains_no_time_marks_no_hour() -> None:
    unknown = Outcome(request_id=uuid.uuid4(), event=OutcomeEvent.SHOWN, occurred_at=NOON)

    assert list_dirty_hours([unknown]) == set()


def test_the_command_counts_a_period_again(company: Company) -> None:
    add_completion(company)
    roll_up(company)
    with tenant_scope(company.tenant_id):
        UsageHour.objects.update(requests=77)
    output = StringIO()
    call_command(
        "rebuild_rollups", company.slug, "--from=2026-11-20", "--to=2026-11-21", stdout=output
    )

    assert read_single_rollup(company).requests == 1
    assert "1 days recounted" in output.getvalue()


@pytest.mark.parametrize(
    ("slug", "first", "end", "error"),
    [
        ("nobody", "2026-11-20", "2026-11-21", "no tenant nobody"),
        (None, "2026-11-20", "2026-11-20", "1 to 400 days"),  # None: the company's slug
        (None, "2026-11-32", "2026-12-20", "write a day"),
        (None, "2020-11-20", "2026-12-20", "1 to 400 days"),
    ],
)
def test_the_command_refuses_invalid_arguments(
    company: Company, slug: str | None, first: str, end: str, error: str
) -> None:
    with pytest.raises(CommandError, match=error):
        call_command("rebuild_rollups", slug or company.slug, f"--from={first}", f"--to={end}")
