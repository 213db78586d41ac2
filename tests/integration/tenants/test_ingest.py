"""Each valid usage record becomes exactly one row, even if workers crash."""

import uuid
from threading import Thread
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.utils import timezone

import caret.celery  # noqa: F401  # registers the tasks
from caret.contracts.policy import Mode, Tier
from caret.contracts.usage import (
    USAGE_FIELD,
    USAGE_GROUP,
    USAGE_STREAM,
    CompletionRecord,
    FinishReason,
    OutcomeEvent,
    OutcomeRecord,
    TypingRecord,
    encode_records,
)
from caret.contracts.usage import UsageRecord as Record
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import KeyId, RequestId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import ApiKey, Outcome, TypingReport, UsageRecord
from tenants.usage.ingestion.operations import ingest_all_entries
from tenants.usage.ingestion.redis_stream import (
    MAX_ENTRIES_PER_READ,
    MAX_REJECTED,
    REJECTED_STREAM,
    UsageStream,
)
from tenants.usage.tasks import ingest_usage
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_key


@pytest.fixture
def company() -> Company:
    return make_company("initech", {})


@pytest.fixture
def stream() -> UsageStream:
    """Return a consumer that immediately claims entries of others."""
    usage_stream = UsageStream(connect_to_redis(), consumer="test", claim_after_ms=0)
    ingest_all_entries(usage_stream)  # removes the entries that earlier tests left
    return usage_stream


def new_id() -> str:
    return str(uuid.uuid4())


def completion(company: Company, **changes: Any) -> CompletionRecord:
    record = CompletionRecord(
        request_id=RequestId(new_id()),
        tenant_id=company.tenant_id,
        user_id=None,
        key_id=KeyId(new_id()),
        occurred_at_ms=to_unix_ms(timezone.now()),
        protocol="stream",
        mode=Mode.INLINE,
        language="python",
        tier=Tier.FAST,
        pool="fast",
        replica="fast-0",
        finish_reason=FinishReason.STOP,
        error_code="",
        prompt_tokens=100,
        cached_tokens=40,
        generated_tokens=9,
        assemble_ms=1.0,
        first_token_ms=30.0,
        engine_ms=28.0,
        total_ms=60.0,
    )
    return msgspec.structs.replace(record, **changes)


def outcome(company: Company) -> OutcomeRecord:
    return OutcomeRecord(
        outcome_id=RequestId(new_id()),
        request_id=RequestId(new_id()),
        tenant_id=company.tenant_id,
        user_id=None,
        occurred_at_ms=to_unix_ms(timezone.now()),
        event=OutcomeEvent.ACCEPTED,
        chars=12,
        after_ms=900,
    )


def typing_report(company: Company, *, chars: int = 120) -> TypingRecord:
    return TypingRecord(
        report_id=RequestId(new_id()),
        tenant_id=company.tenant_id,
        user_id=None,
        occurred_at_ms=to_unix_ms(timezone.now()),
        language="go",
        editor="zed",
        chars=chars,
    )


def send(*records: Record) -> None:
    """Add one entry with these records to the Redis stream."""
    send_bytes(encode_records(list(records)))


def send_bytes(data: bytes) -> None:
    connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: data})


def list_request_ids(company: Company) -> set[str]:
    with tenant_scope(company.tenant_id):
        return {str(row.request_id) for row in UsageRecord.objects.all()}


def list_rejected_since(last_id: str) -> list[tuple[str, bytes]]:
    entries: Any = connect_to_redis().xrange(REJECTED_STREAM, min=f"({last_id}")  # "(": exclusive
    return [(fields[b"reason"].decode(), fields[b"data"]) for _, fields in entries]


def find_last_rejected_id() -> str:
    """Return the ID of the newest rejected entry, or "0-0", which is before all IDs."""
    entries: Any = connect_to_redis().xrevrange(REJECTED_STREAM, count=1)
    return entries[0][0].decode() if entries else "0-0"


def test_records_become_rows(company: Company, stream: UsageStream) -> None:
    record = completion(company)
    send(record, outcome(company))

    result = ingest_all_entries(stream)

    assert (result.records, result.rejected) == (2, 0)
    assert list_request_ids(company) == {record.request_id}
    with tenant_scope(company.tenant_id):
        assert [row.event for row in Outcome.objects.all()] == ["accepted"]


def test_persistence_and_typed_characters_become_rows(
    company: Company, stream: UsageStream, cast: Cast
) -> None:
    persisted = msgspec.structs.replace(
        outcome(company), event=OutcomeEvent.PERSISTED, span_s=300, edited_ratio=0.2, lines=3
    )
    typed = typing_report(company)
    send(persisted, typed, persisted, typed)

    ingest_all_entries(stream)

    with tenant_scope(company.tenant_id):
        (persistence,), (typing_row,) = Outcome.objects.all(), TypingReport.objects.all()
    assert (persistence.span_s, persistence.edited_ratio, persistence.lines) == (300, 0.2, 3)
    assert (typing_row.language, typing_row.editor, typing_row.chars) == ("go", "zed", 120)
    with tenant_scope(cast.globex.tenant_id):
        assert not TypingReport.objects.filter(report_id=typed.report_id).exists()


def test_another_tenant_does_not_see_the_rows(
    company: Company, stream: UsageStream, cast: Cast
) -> None:
    record = completion(company)
    send(record)

    ingest_all_entries(stream)

    assert record.request_id not in list_request_ids(cast.globex)


def test_ingested_entries_are_removed_from_the_stream(
    company: Company, stream: UsageStream
) -> None:
    send(completion(company))

    ingest_all_entries(stream)

    assert connect_to_redis().xlen(USAGE_STREAM) == 0
    assert connect_to_redis().xpending(USAGE_STREAM, USAGE_GROUP)["pending"] == 0


def test_a_record_delivered_twice_becomes_one_row(company: Company, stream: UsageStream) -> None:
    record = completion(company)
    send(record, record)
    send(record)

    result = ingest_all_entries(stream)

    assert result.rejected == 0
    assert list_request_ids(company) == {record.request_id}
    with tenant_scope(company.tenant_id):
        assert UsageRecord.objects.count() == 1


def test_a_crash_before_the_acknowledgement_duplicates_no_rows(
    company: Company, stream: UsageStream
) -> None:
    record = completion(company)
    send(record)
    with pytest.raises(ConnectionResetError):
        ingest_all_entries(CrashingConsumer(connect_to_redis(), consumer="dying"))
    assert list_request_ids(company) == {record.request_id}

    result = ingest_all_entries(stream)

    assert result.rejected == 0
    with tenant_scope(company.tenant_id):
        assert UsageRecord.objects.count() == 1
    assert connect_to_redis().xlen(USAGE_STREAM) == 0


def test_entries_of_a_dead_consumer_are_ingested_by_another(
    company: Company, stream: UsageStream
) -> None:
    record = completion(company)
    send(record)
    dead = UsageStream(connect_to_redis(), consumer="dead")
    assert len(dead.read_new()) == 1

    ingest_all_entries(stream)

    assert list_request_ids(company) == {record.request_id}


def test_entries_of_a_live_consumer_are_not_claimed(company: Company, stream: UsageStream) -> None:
    send(completion(company))
    slow = UsageStream(connect_to_redis(), consumer="slow")
    entries = slow.read_new()

    ingest_all_entries(UsageStream(connect_to_redis(), consumer="other", claim_after_ms=3_600_000))

    assert list_request_ids(company) == set()
    slow.acknowledge(entries, rejections=[])  # so that no later test gets the entry


# Entries are in MessagePack, in which the byte C1 is always invalid.
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xc1", "entry: not an array of records"),
        (b"", "entry: not an array of records"),
        (msgspec.msgpack.encode([{"x": 1}]), "record: ValidationError"),
        (msgspec.msgpack.encode({"x": 1}), "entry: not an array of records"),
    ],
)
def test_a_malformed_entry_is_rejected_and_blocks_no_other(
    company: Company, stream: UsageStream, data: bytes, reason: str
) -> None:
    record, before = completion(company), find_last_rejected_id()
    send_bytes(data)
    send(record)

    result = ingest_all_entries(stream)

    assert [rejection for rejection, _ in list_rejected_since(before)] == [reason]
    assert (result.records, result.rejected) == (1, 1)
    assert list_request_ids(company) == {record.request_id}


def test_an_invalid_record_does_not_affect_others_in_its_entry(
    company: Company, stream: UsageStream
) -> None:
    valid_record, invalid_record = completion(company), completion(company, prompt_tokens=-1)
    send(valid_record, invalid_record)

    ingest_all_entries(stream)

    assert list_request_ids(company) == {valid_record.request_id}


def test_a_record_of_an_unknown_tenant_is_rejected(company: Company, stream: UsageStream) -> None:
    before, record = find_last_rejected_id(), completion(company)
    send(completion(company, tenant_id=TenantId(new_id())), record)

    ingest_all_entries(stream)

    assert [reason for reason, _ in list_rejected_since(before)] == ["tenant_id: unknown"]
    assert list_request_ids(company) == {record.request_id}


def test_an_entry_without_the_field_is_rejected(stream: UsageStream) -> None:
    before = find_last_rejected_id()
    connect_to_redis().xadd(USAGE_STREAM, {"other": "x"})

    ingest_all_entries(stream)

    assert len(list_rejected_since(before)) == 1


def test_the_stream_of_rejected_entries_is_limited(stream: UsageStream) -> None:
    pipeline = connect_to_redis().pipeline()
    for _ in range(MAX_REJECTED + 50):
        pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: b"\xc1"})
    pipeline.execute()

    ingest_all_entries(stream)

    assert connect_to_redis().xlen(REJECTED_STREAM) == MAX_REJECTED


def test_the_content_of_a_rejected_record_is_not_logged(
    company: Company, stream: UsageStream, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = "def secret_of_the_customer"
    send(completion(company, language=secret * 20))
    send_bytes(secret.encode())

    ingest_all_entries(stream)

    output = "".join(capfd.readouterr())
    assert "usage.rejected" in output
    assert secret not in output


def test_a_record_without_a_monthly_partition_is_stored(
    company: Company, stream: UsageStream
) -> None:
    record = completion(company, occurred_at_ms=1_000)  # in 1970
    send(record)

    ingest_all_entries(stream)

    assert list_request_ids(company) == {record.request_id}


def test_concurrent_workers_neither_lose_nor_duplicate_records(
    company: Company, stream: UsageStream
) -> None:
    records = [completion(company) for _ in range(400)]
    for start in range(0, 400, 4):
        send(*records[start : start + 4])

    def work(consumer: str) -> None:
        ingest_all_entries(UsageStream(connect_to_redis(), consumer=consumer, claim_after_ms=0))
        connection.close()

    workers = [Thread(target=work, args=[f"worker-{number}"]) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    with tenant_scope(company.tenant_id):
        assert UsageRecord.objects.count() == 400
    assert list_request_ids(company) == {record.request_id for record in records}


def test_a_limited_run_leaves_the_rest_for_the_next(company: Company, stream: UsageStream) -> None:
    for _ in range(MAX_ENTRIES_PER_READ + 3):
        send(completion(company))

    ingest_all_entries(stream, max_reads=1)
    num_left = connect_to_redis().xlen(USAGE_STREAM)
    ingest_all_entries(stream)

    assert num_left == 3
    assert len(list_request_ids(company)) == MAX_ENTRIES_PER_READ + 3


def test_the_task_ingests_records(company: Company, stream: UsageStream) -> None:
    record = completion(company)
    send(record)

    ingest_usage()

    assert list_request_ids(company) == {record.request_id}


def test_the_last_use_of_a_key_is_updated_at_most_once_a_minute(stream: UsageStream) -> None:
    company = make_company("initech", GLOBEX_PEOPLE)
    lookup_id = make_key(company, company.developer).key.lookup_id
    with tenant_scope(company.tenant_id):
        key_id = KeyId(str(ApiKey.objects.get(lookup_id=lookup_id).id))
    first = completion(company, key_id=key_id)
    after_1_s = completion(company, key_id=key_id, occurred_at_ms=first.occurred_at_ms + 1_000)
    after_61_s = completion(company, key_id=key_id, occurred_at_ms=first.occurred_at_ms + 61_000)

    ages_ms = []
    for record in (first, after_1_s, after_61_s):
        send(record)
        ingest_all_entries(stream)
        with tenant_scope(company.tenant_id):
            used_at = ApiKey.objects.get(lookup_id=lookup_id).last_used_at
        assert used_at is not None
        ages_ms.append(to_unix_ms(used_at) - first.occurred_at_ms)

    assert ages_ms == [0, 0, 61_000]


class CrashingConsumer(UsageStream):
    """A consumer whose process dies after the commit and before the acknowledgement."""

    def acknowledge(self, *args: Any) -> None:
        raise ConnectionResetError
