"""A late outcome counts once, and only if its sender made the completion.

A late outcome belongs to a completion that its gateway does not know, for example because another
gateway served it. It arrives as a `LateOutcomeRecord`; other outcomes arrive as an `OutcomeRecord`.
"""

import uuid
from threading import Thread
from typing import Any

import msgspec
import pytest
from django.db import connection

from caret.contracts.usage import (
    MAX_PARTS,
    USAGE_FIELD,
    USAGE_STREAM,
    LateOutcomeRecord,
    OutcomeEvent,
    OutcomeRecord,
    encode_records,
)
from caret.contracts.usage import UsageRecord as Record
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import KeyId, RequestId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.models import DirtyHour, Outcome, UsageRecord
from tenants.usage.ingestion.late_outcomes import insert_late_outcomes
from tenants.usage.ingestion.operations import ingest_all_entries
from tenants.usage.ingestion.redis_stream import UsageStream
from tenants.usage.ingestion.row_mapping import LateOutcome, decode_row
from tests.fixtures.companies import Cast, Company, make_company
from tests.integration.tenants.records import NOON, add_completion

KEY_ID = KeyId(str(uuid.uuid4()))


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.DEVELOPER: "bob", Role.ADMINISTRATOR: "ada"})


@pytest.fixture
def stream() -> UsageStream:
    usage_stream = UsageStream(connect_to_redis(), consumer="test", claim_after_ms=0)
    ingest_all_entries(usage_stream)  # entries left by earlier tests
    return usage_stream


def late_outcome(company: Company, request_id: uuid.UUID, **changes: Any) -> LateOutcomeRecord:
    """Return an outcome reported by Bob, who made the completions."""
    record = LateOutcomeRecord(
        outcome_id=RequestId(str(uuid.uuid4())),
        request_id=RequestId(str(request_id)),
        tenant_id=company.tenant_id,
        user_id=company.developer.user_id,
        key_id=KEY_ID,
        occurred_at_ms=to_unix_ms(NOON) + 60_000,
        event=OutcomeEvent.ACCEPTED,
        after_ms=900,
        chars=None,
        lines=None,
        span_s=None,
        edited_ratio=None,
    )
    return msgspec.structs.replace(record, **changes)


def ingest(stream: UsageStream, *records: Record) -> None:
    """Send each record in an entry of its own, as gateways do, and ingest all entries."""
    for record in records:
        connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: encode_records([record])})
    ingest_all_entries(stream)


def read_outcomes(company: Company) -> list[tuple[str, int, int | None, int | None]]:
    """Return event, characters, lines and time span of each outcome.

    The suggestion of `add_completion` has 40 characters and 2 lines.
    """
    with tenant_scope(company.tenant_id):
        rows = Outcome.objects.order_by("event", "span_s", "after_ms")
        return [(row.event, row.chars, row.lines, row.span_s) for row in rows]


def test_a_late_outcome_counts_the_suggested_characters(
    company: Company, stream: UsageStream
) -> None:
    request_id = add_completion(company)
    persisted = {"event": OutcomeEvent.PERSISTED, "span_s": 30, "edited_ratio": 0.5, "chars": 7}

    ingest(
        stream, late_outcome(company, request_id), late_outcome(company, request_id, **persisted)
    )

    assert read_outcomes(company) == [("accepted", 40, 2, None), ("persisted", 7, 2, 30)]


def test_counts_are_capped_at_the_suggestions_size(company: Company, stream: UsageStream) -> None:
    request_id = add_completion(company)

    ingest(stream, late_outcome(company, request_id, chars=2**31 - 1, lines=2**31 - 1))

    assert read_outcomes(company) == [("accepted", 40, 2, None)]


def test_a_late_outcome_marks_its_completions_hour_dirty(
    company: Company, stream: UsageStream
) -> None:
    request_id = add_completion(company)
    with tenant_scope(company.tenant_id):
        DirtyHour.objects.all().delete()

    ingest(stream, late_outcome(company, request_id))

    with tenant_scope(company.tenant_id):
        assert [mark.hour.hour for mark in DirtyHour.objects.all()] == [NOON.hour]


def test_an_outcome_reported_with_another_tenants_key_is_ignored(
    company: Company, stream: UsageStream, cast: Cast
) -> None:
    request_id = add_completion(company)
    before = read_outcomes(cast.globex)

    ingest(
        stream,
        late_outcome(cast.globex, request_id),
        late_outcome(cast.globex, request_id, user_id=company.developer.user_id),
    )

    assert read_outcomes(company) == []
    assert read_outcomes(cast.globex) == before


def test_an_outcome_reported_with_a_colleagues_key_is_ignored(
    company: Company, stream: UsageStream
) -> None:
    request_id = add_completion(company)

    ingest(
        stream,
        late_outcome(company, request_id, user_id=company.administrator.user_id),
        late_outcome(company, request_id, user_id=None),
    )

    assert read_outcomes(company) == []


def test_a_service_key_reports_only_outcomes_of_its_own_completions(
    company: Company, stream: UsageStream
) -> None:
    request_id = add_completion(company, user_id=None)
    with tenant_scope(company.tenant_id):
        key_id = _read_key_id(request_id)

    ingest(stream, late_outcome(company, request_id, user_id=None))
    assert read_outcomes(company) == []
    ingest(stream, late_outcome(company, request_id, user_id=None, key_id=key_id))

    assert len(read_outcomes(company)) == 1


def test_an_outcome_of_an_unknown_request_is_ignored(company: Company, stream: UsageStream) -> None:
    add_completion(company)

    ingest(
        stream,
        late_outcome(company, uuid.uuid4()),
        # The time in this ID is in the year 10889, which Python cannot represent.
        late_outcome(company, uuid.UUID(int=2**128 - 1)),
    )

    assert read_outcomes(company) == []


@pytest.mark.parametrize("is_first_timely", [True, False])
def test_a_late_outcome_that_repeats_an_earlier_one_does_not_count(
    company: Company, stream: UsageStream, is_first_timely: bool
) -> None:
    """Two late outcomes repeat a first outcome, which was late as well or arrived in time."""
    request_id = add_completion(company)
    timely_outcome = OutcomeRecord(
        outcome_id=RequestId(str(uuid.uuid4())),
        request_id=RequestId(str(request_id)),
        tenant_id=company.tenant_id,
        user_id=UserId(company.developer.user_id),
        occurred_at_ms=to_unix_ms(NOON) + 30_000,
        event=OutcomeEvent.ACCEPTED,
        chars=40,
        after_ms=900,
        lines=2,
    )
    first: Record = timely_outcome if is_first_timely else late_outcome(company, request_id)

    ingest(
        stream,
        first,
        late_outcome(company, request_id),
        late_outcome(company, request_id, after_ms=7),
    )

    assert read_outcomes(company) == [("accepted", 40, 2, None)]


def test_persistence_counts_once_for_each_time_span(company: Company, stream: UsageStream) -> None:
    request_id = add_completion(company)
    persisted = {"event": OutcomeEvent.PERSISTED, "edited_ratio": 0.0, "chars": 3}

    ingest(
        stream,
        *(
            late_outcome(company, request_id, span_s=span, **persisted)
            for span in (30, 120, 30, 120)
        ),
    )

    assert [span for _, _, _, span in read_outcomes(company)] == [30, 120]


def test_partial_acceptances_are_deduplicated_by_time_and_limited(
    company: Company, stream: UsageStream
) -> None:
    request_id = add_completion(company)
    part = {"event": OutcomeEvent.PARTIALLY_ACCEPTED, "chars": 1, "lines": 1}
    parts = [
        late_outcome(company, request_id, after_ms=after_ms, **part)
        for after_ms in range(MAX_PARTS + 3)
    ]

    ingest(stream, *parts[:2], *parts[:2])
    assert len(read_outcomes(company)) == 2
    ingest(stream, *parts)

    assert len(read_outcomes(company)) == MAX_PARTS


def test_two_concurrent_workers_count_an_outcome_once(
    company: Company, stream: UsageStream
) -> None:
    record = late_outcome(company, add_completion(company))
    connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: encode_records([record])})

    def ingest_in_thread() -> None:
        ingest_all_entries(stream)
        connection.close()

    other_worker = Thread(target=ingest_in_thread)
    with tenant_scope(company.tenant_id):
        second_record = msgspec.structs.replace(record, outcome_id=RequestId(str(uuid.uuid4())))
        row = decode_row(msgspec.msgpack.encode(second_record))
        assert isinstance(row, LateOutcome)
        assert len(insert_late_outcomes(company.tenant_id, [row])) == 1
        other_worker.start()
        other_worker.join(timeout=1.0)
        assert other_worker.is_alive(), "the other worker must wait until this transaction ends"
    other_worker.join()

    assert len(read_outcomes(company)) == 1


def _read_key_id(request_id: uuid.UUID) -> KeyId:
    return KeyId(str(UsageRecord.objects.get(request_id=request_id).key_id))
