"""Mapping of usage records to rows. Rejects records that the tables cannot store. Pure."""

import math
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from caret.contracts.usage import (
    SPANS_S,
    CompletionRecord,
    LateOutcomeRecord,
    OutcomeEvent,
    OutcomeRecord,
    TypingRecord,
)
from caret.contracts.usage import UsageRecord as Record
from caret.foundation.clock import from_unix_ms
from tenants.models import Outcome, TypingReport, UsageRecord

_MAX_TEXT_CHARS: Final = 200
_MAX_INTEGER: Final = 2**31 - 1  # the maximum of a Postgres integer
# Fields of a completion record that are copied to the column of the same name.
_PLAIN_FIELDS: Final = (
    *("protocol", "mode", "language", "tier", "pool", "replica", "finish_reason", "error_code"),
    *("prompt_tokens", "cached_tokens", "generated_tokens"),
    *("assemble_ms", "first_token_ms", "engine_ms", "total_ms"),
    *(
        "trigger",
        "variant",
        "filter_reason",
        "num_files",
        "num_snippets",
        "num_in_flight_at_replica",
    ),
    *("authenticated_ms", "admitted_ms", "routed_ms"),
    *("editor", "model", "num_chars", "num_lines", "is_syntax_checked"),
)

Row = UsageRecord | Outcome | TypingReport


@dataclass(frozen=True, slots=True)
class LateOutcome:
    """An outcome that becomes a row if its completion is found."""

    outcome: Outcome  # `chars` and `lines` are set later
    key_id: uuid.UUID
    requested_at: datetime  # when the completion was requested, from the request ID
    chars: int | None  # None: the whole suggestion
    lines: int | None  # None: the whole suggestion

    @property
    def tenant_id(self) -> uuid.UUID:
        return self.outcome.tenant_id


class UnstorableRecord(Exception):
    """The record cannot become a row. The text says what is wrong, without the record's content."""


def decode_entry(data: bytes) -> list[bytes]:
    """Split a stream entry into its encoded records. Raises UnstorableRecord."""
    try:
        return [bytes(raw) for raw in msgspec.msgpack.decode(data, type=list[msgspec.Raw])]
    except msgspec.DecodeError as error:
        raise UnstorableRecord("entry: not an array of records") from error


def decode_row(data: bytes) -> Row | LateOutcome:
    """Decode a record into a row or a late outcome. Raises UnstorableRecord."""
    try:
        record = msgspec.msgpack.decode(data, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnstorableRecord(f"record: {type(error).__name__}") from error
    _check_values(record)
    try:
        return _to_row(record)
    except (ValueError, OverflowError) as error:
        raise UnstorableRecord("record: an id or a time is malformed") from error


def _check_values(record: Record) -> None:
    """Check that the columns can store the record's values. Raises UnstorableRecord."""
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, str) and (len(value) > _MAX_TEXT_CHARS or "\0" in value):
            raise UnstorableRecord(f"{name}: too long or not text")
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise UnstorableRecord(f"{name}: negative, or not a number")
        if isinstance(value, int) and name != "occurred_at_ms" and value > _MAX_INTEGER:
            raise UnstorableRecord(f"{name}: too large")

    if isinstance(record, OutcomeRecord | LateOutcomeRecord):
        _check_persistence(record)


def _check_persistence(record: OutcomeRecord | LateOutcomeRecord) -> None:
    """Check the fields of persisted outcomes. Raises UnstorableRecord."""
    if record.event is OutcomeEvent.PERSISTED:
        is_valid = record.span_s in SPANS_S and record.edited_ratio is not None
    else:
        is_valid = record.span_s is None and record.edited_ratio is None
    if not is_valid:
        raise UnstorableRecord(
            "span_s, edited_ratio: required for persisted, not allowed otherwise"
        )
    if record.edited_ratio is not None and record.edited_ratio > 1:
        raise UnstorableRecord("edited_ratio: above 1")


def _to_row(record: Record) -> Row | LateOutcome:
    match record:
        case CompletionRecord():
            return _to_usage_row(record)
        case OutcomeRecord():
            return _to_outcome_row(record, chars=record.chars, lines=record.lines)
        case LateOutcomeRecord():
            return _to_late_outcome(record)
        case TypingRecord():
            return _to_typing_report(record)


def _to_usage_row(record: CompletionRecord) -> UsageRecord:
    return UsageRecord(
        tenant_id=uuid.UUID(record.tenant_id),
        occurred_at=from_unix_ms(record.occurred_at_ms),
        request_id=uuid.UUID(record.request_id),
        user_id=_parse_optional_id(record.user_id),
        key_id=uuid.UUID(record.key_id),
        **{name: getattr(record, name) for name in _PLAIN_FIELDS},
    )


def _to_outcome_row(
    record: OutcomeRecord | LateOutcomeRecord, *, chars: int, lines: int
) -> Outcome:
    return Outcome(
        tenant_id=uuid.UUID(record.tenant_id),
        occurred_at=from_unix_ms(record.occurred_at_ms),
        outcome_id=uuid.UUID(record.outcome_id),
        request_id=uuid.UUID(record.request_id),
        user_id=_parse_optional_id(record.user_id),
        event=record.event,
        chars=chars,
        after_ms=record.after_ms,
        lines=lines,
        span_s=record.span_s,
        edited_ratio=record.edited_ratio,
        display_ms=record.display_ms,
    )


def _to_late_outcome(record: LateOutcomeRecord) -> LateOutcome:
    return LateOutcome(
        outcome=_to_outcome_row(record, chars=0, lines=0),
        key_id=uuid.UUID(record.key_id),
        # The first 48 of 128 bits of a version 7 UUID are its time in Unix milliseconds.
        requested_at=from_unix_ms(uuid.UUID(record.request_id).int >> 80),
        chars=record.chars,
        lines=record.lines,
    )


def _to_typing_report(record: TypingRecord) -> TypingReport:
    return TypingReport(
        tenant_id=uuid.UUID(record.tenant_id),
        occurred_at=from_unix_ms(record.occurred_at_ms),
        report_id=uuid.UUID(record.report_id),
        user_id=_parse_optional_id(record.user_id),
        language=record.language,
        editor=record.editor,
        chars=record.chars,
    )


def _parse_optional_id(text: str | None) -> uuid.UUID | None:
    return None if text is None else uuid.UUID(text)
