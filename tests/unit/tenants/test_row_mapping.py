"""The conversion of usage records to database rows.

Any bytes become a row, or are rejected with a reason.
"""

import contextlib
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Mode, Tier
from caret.contracts.usage import (
    CompletionRecord,
    FinishReason,
    OutcomeEvent,
    OutcomeRecord,
    TypingRecord,
)
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import KeyId, RequestId, TenantId
from tenants.models import Outcome, TypingReport, UsageRecord
from tenants.usage.ingestion.row_mapping import UnstorableRecord, decode_entry, decode_row

SECRET = "def secret_of_the_customer"


def new_id() -> str:
    return str(uuid.uuid4())


COMPLETION = CompletionRecord(
    request_id=RequestId(new_id()),
    tenant_id=TenantId(new_id()),
    user_id=None,
    key_id=KeyId(new_id()),
    occurred_at_ms=1_795_000_000_123,
    protocol="openai",
    mode=Mode.FIM,
    language="python",
    tier=Tier.FAST,
    pool="fast",
    replica="fast-0",
    finish_reason=FinishReason.ERROR,
    error_code="engine_disconnected",
    prompt_tokens=100,
    cached_tokens=40,
    generated_tokens=0,
    assemble_ms=1.5,
    first_token_ms=None,
    engine_ms=None,
    total_ms=9.25,
)
OUTCOME = OutcomeRecord(
    outcome_id=RequestId(new_id()),
    request_id=RequestId(new_id()),
    tenant_id=TenantId(new_id()),
    user_id=None,
    occurred_at_ms=5,
    event=OutcomeEvent.REJECTED,
    chars=3,
    after_ms=800,
)


def encoded(record: msgspec.Struct, **changes: Any) -> bytes:
    return msgspec.msgpack.encode(msgspec.to_builtins(record) | changes)


def test_a_completion_becomes_a_row() -> None:
    row = decode_row(encoded(COMPLETION))

    assert isinstance(row, UsageRecord)
    assert to_unix_ms(row.occurred_at) == COMPLETION.occurred_at_ms
    for name in COMPLETION.__struct_fields__:
        if name != "occurred_at_ms":
            value = getattr(COMPLETION, name)  # an ID is a string here and a UUID in the row
            assert getattr(row, name) == value or str(getattr(row, name)) == value, name


def test_an_outcome_becomes_a_row() -> None:
    row = decode_row(encoded(OUTCOME))

    assert isinstance(row, Outcome)
    assert (row.event, row.chars, row.after_ms) == ("rejected", 3, 800)


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": SECRET},
        {"request_id": "1"},
        {"user_id": "not an id"},
        {"language": SECRET * 20},
        {"pool": "a\0b"},
        {"prompt_tokens": -1},
        {"prompt_tokens": 2**31},
        {"occurred_at_ms": -1},
        {"occurred_at_ms": 2**62},
        {"mode": SECRET},
        {"type": "other"},
        {"surprise": SECRET},
        {"total_ms": "fast"},
    ],
)
def test_a_record_that_no_table_can_store_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(UnstorableRecord) as exc_info:
        decode_row(encoded(COMPLETION, **changes))

    assert SECRET not in str(exc_info.value)


def test_the_display_latency_of_an_outcome_is_stored() -> None:
    row = decode_row(encoded(OUTCOME, event="shown", display_ms=137))

    assert isinstance(row, Outcome)
    assert row.display_ms == 137


def test_a_typing_report_becomes_a_row() -> None:
    record = TypingRecord(
        report_id=RequestId(new_id()),
        tenant_id=TenantId(new_id()),
        user_id=None,
        occurred_at_ms=5,
        language="go",
        editor="zed",
        chars=300,
    )

    row = decode_row(encoded(record))

    assert isinstance(row, TypingReport)
    assert (row.language, row.editor, row.chars) == ("go", "zed", 300)


@pytest.mark.parametrize(
    "changes",
    [
        {"event": "persisted"},
        {"event": "persisted", "span_s": 16, "edited_ratio": 0.1},  # there is no such span
        {"event": "persisted", "span_s": 15, "edited_ratio": 1.5},
        {"event": "accepted", "span_s": 15, "edited_ratio": 0.1},
        {"event": "accepted", "edited_ratio": 0.1},
        {"event": "shown", "span_s": 7},
    ],
)
def test_only_a_persisted_outcome_has_a_span_and_an_edited_ratio_and_both_are_valid(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(UnstorableRecord):
        decode_row(encoded(OUTCOME, **changes))


def test_a_persisted_outcome_becomes_a_row() -> None:
    row = decode_row(encoded(OUTCOME, event="persisted", span_s=120, edited_ratio=0.2))

    assert isinstance(row, Outcome)
    assert (row.span_s, row.edited_ratio) == (120, 0.2)


def test_nan_is_rejected() -> None:
    with pytest.raises(UnstorableRecord, match="total_ms"):
        decode_row(encoded(COMPLETION, total_ms=float("nan")))


@given(st.binary(max_size=300))
def test_any_bytes_raise_no_other_error_than_unstorable_record(data: bytes) -> None:
    for decode in (decode_entry, decode_row):
        with contextlib.suppress(UnstorableRecord):
            decode(data)


@given(
    st.dictionaries(
        st.sampled_from(COMPLETION.__struct_fields__),
        st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.booleans()),
    )
)
def test_any_field_value_raises_no_other_error_than_unstorable_record(
    changes: dict[str, Any],
) -> None:
    try:
        data = encoded(COMPLETION, **changes)
    except (OverflowError, UnicodeEncodeError):
        return
    with contextlib.suppress(UnstorableRecord):
        decode_row(data)


def test_an_entry_is_split_into_its_records() -> None:
    data = msgspec.msgpack.encode([COMPLETION, {"no": "record"}, OUTCOME])

    rows = decode_entry(data)

    assert len(rows) == 3
    assert isinstance(decode_row(rows[0]), UsageRecord)
    assert isinstance(decode_row(rows[2]), Outcome)
