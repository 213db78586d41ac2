"""Usage records: what a request cost and how it ended, as counts and never as code.

Gateways append batches of records to a Redis stream. Each entry has one field `records`, a msgpack
array. The control plane ingests each record once, by its ID.
"""

from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.policy import Mode, Tier, Trigger
from caret.foundation.ids import KeyId, RequestId, TenantId, UserId

USAGE_STREAM: Final = "caret:usage"  # Redis key
USAGE_FIELD: Final = "records"  # of an entry
USAGE_GROUP: Final = "ingest"  # the consumer group of the workers


class FinishReason(StrEnum):
    """The reason why a completion ended."""

    STOP = "stop"  # ended by the model, or by the filter at a suitable place
    LENGTH = "length"  # the token limit was reached
    CANCELLED = "cancelled"  # cancelled by the client, or the client disconnected
    SUPERSEDED = "superseded"  # replaced by a newer request for the same path
    SHED = "shed"  # rejected before the engine for lack of capacity
    FILTERED = "filtered"  # withheld by the filter
    BUDGET_EXCEEDED = "budget_exceeded"  # rejected before the engine because a hard budget is spent
    ERROR = "error"  # the record has the error code


class OutcomeEvent(StrEnum):
    """The outcome of a suggestion in the editor, as the client reports it."""

    SHOWN = "shown"
    ACCEPTED = "accepted"
    PARTIALLY_ACCEPTED = "partially_accepted"
    REJECTED = "rejected"
    PERSISTED = "persisted"  # a check of the accepted text after one of SPANS_S


# The times after acceptance at which clients check whether the text is still there: the intervals
# of Copilot and Cody, and half an hour.
SPANS_S: Final = (15, 30, 120, 300, 600, 1_800)
# Partial acceptances that count for one suggestion: enough if it is accepted word by word.
MAX_PARTS: Final = 32


class CompletionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="completion"):
    request_id: RequestId
    tenant_id: TenantId
    user_id: UserId | None  # None: a service key
    key_id: KeyId
    occurred_at_ms: int  # Unix milliseconds, when the request was received
    protocol: str  # "stream", "openai", ...
    mode: Mode
    language: str  # sent by the client, or else of the path's suffix; "": unknown
    tier: Tier
    pool: str  # "" if the request was not admitted
    replica: str  # host:port; "" if the request was not routed
    finish_reason: FinishReason
    error_code: str  # "" unless finish_reason is error
    prompt_tokens: int
    # Prompt tokens from the prefix cache. None: the engine did not report the number, for example
    # because it was stopped.
    cached_tokens: int | None
    generated_tokens: int
    # Milliseconds from the receipt of the request; None: not reached.
    assemble_ms: float | None  # until the end of `assemble`
    first_token_ms: float | None  # until the first text was sent to the client
    engine_ms: float | None  # not from the receipt: from the call of the engine to its first token
    total_ms: float  # until the end
    # Added later; older records have the default.
    trigger: Trigger = Trigger.AUTOMATIC
    variant: str = ""  # name of the experiment's variant; "": none
    filter_reason: str = ""  # why the filter truncated or withheld text; "": it did not
    num_files: int = 0  # other files in the prompt
    num_snippets: int = 0  # retrieved snippets in the prompt
    # Milliseconds from the receipt of the request until the end of the stage; None: not reached.
    authenticated_ms: float | None = None
    admitted_ms: float | None = None
    routed_ms: float | None = None
    # This gateway's requests in flight at the replica, without this one; None: not routed.
    num_in_flight_at_replica: int | None = None

    # One of EDITORS in inference.consumers.base; "": not sent, or unknown to the gateway.
    editor: str = ""
    model: str = ""  # as its pool names it; "": the request was not admitted
    num_chars: int = 0  # sent to the client
    num_lines: int = 0  # lines with these characters, partial lines included
    is_syntax_checked: bool = False  # a parser checked the text, so `filter_reason` can be syntax


class OutcomeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="outcome"):
    outcome_id: RequestId  # ID of this record, so that ingestion counts it once
    request_id: RequestId  # of the completion
    tenant_id: TenantId
    user_id: UserId | None  # None: a service key
    occurred_at_ms: int  # Unix milliseconds, when the report was received
    event: OutcomeEvent
    chars: int  # number of characters shown, accepted or persisted; at most those suggested
    # Milliseconds since the suggestion was shown. For a persisted outcome: since it was accepted.
    after_ms: int
    # Added later.
    lines: int = 0  # number of lines with these characters
    # For a persisted outcome: the interval of SPANS_S, and the edit distance between the accepted
    # text and the current text, as a share of the accepted text, 0 to 1. None for other events.
    span_s: int | None = None
    edited_ratio: float | None = None
    # For a shown outcome: milliseconds from sending the request to text on the screen, as the
    # client measured it. None: the user did not wait for it, or the client did not report the time.
    display_ms: int | None = None


class LateOutcomeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="late"):
    """A late outcome: it reached a gateway, or a connection, that did not serve its completion.

    It counts as an OutcomeRecord if ingestion finds the completion, the user is the same (for a
    service key: the key is the same), and the outcome was not reported before. Fields without a
    comment have the same meaning as those of OutcomeRecord.
    """

    outcome_id: RequestId
    request_id: RequestId  # as the client reports it
    tenant_id: TenantId
    user_id: UserId | None
    key_id: KeyId
    occurred_at_ms: int
    event: OutcomeEvent
    after_ms: int
    chars: int | None  # None: the whole suggestion
    lines: int | None  # None: the whole suggestion
    span_s: int | None
    edited_ratio: float | None
    display_ms: int | None = None


class TypingRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="typing"):
    """Characters typed by hand in one language since the client's last report."""

    report_id: RequestId  # ID of this record, so that ingestion counts it once
    tenant_id: TenantId
    user_id: UserId | None  # None: a service key
    occurred_at_ms: int  # Unix milliseconds, when the report was received
    language: str  # "": unknown, or not in caret.contracts.language_ids.LANGUAGES
    editor: str  # as in CompletionRecord
    chars: int  # number of characters


UsageRecord = CompletionRecord | OutcomeRecord | LateOutcomeRecord | TypingRecord

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[UsageRecord])


def encode_records(records: list[UsageRecord]) -> bytes:
    return _encoder.encode(records)


def decode_records(data: bytes) -> list[UsageRecord]:
    """Decode a batch of usage records.

    Raises msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError.
    """
    return _decoder.decode(data)
