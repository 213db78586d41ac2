"""Usage records: what a request cost and how it ended, in counts, never in code.

Gateways append them in batches to a Redis stream, each entry one field `records` that holds a
msgpack array; the control plane ingests each record once, by its request id.
"""

from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.policy import Mode, Tier, Trigger
from caret.foundation.ids import KeyId, RequestId, TenantId, UserId

USAGE_STREAM: Final = "caret:usage"
USAGE_FIELD: Final = "records"
USAGE_GROUP: Final = "ingest"


class FinishReason(StrEnum):
    """How a completion ended."""

    STOP = "stop"  # the model, or the filter at a good point
    LENGTH = "length"  # max_tokens
    CANCELLED = "cancelled"  # the client took it back or left
    SUPERSEDED = "superseded"  # a newer request for the same path
    SHED = "shed"  # dropped before the engine for want of capacity
    FILTERED = "filtered"  # withheld
    BUDGET = "budget"  # dropped before the engine: a hard budget is spent
    ERROR = "error"  # the error's code is beside it


class OutcomeEvent(StrEnum):
    """What became of a suggestion in the editor; reported by the client."""

    SHOWN = "shown"
    ACCEPTED = "accepted"
    PARTIALLY_ACCEPTED = "partially_accepted"
    REJECTED = "rejected"
    PERSISTED = "persisted"


# When what was accepted is looked at again: Copilot's and Cody's moments, and half an hour.
SPANS_S: Final = (15, 30, 120, 300, 600, 1_800)
MAX_PARTS: Final = 32  # a suggestion accepted word by word


class CompletionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="completion"):
    request_id: RequestId
    tenant_id: TenantId
    user_id: UserId | None  # None: a service key
    key_id: KeyId
    occurred_at_ms: int  # Unix milliseconds, when the request was received
    protocol: str  # "stream", "openai", ...
    mode: Mode
    language: str  # "" when the client did not say
    tier: Tier
    pool: str  # "" when the request never got as far
    replica: str
    finish: FinishReason
    error_code: str  # "" unless finish is error
    prompt_tokens: int
    # Of the prompt, as the engine reports them at its end; None: it was stopped before.
    cached_tokens: int | None
    generated_tokens: int
    # Durations in milliseconds since the request was received; None: not reached.
    assemble_ms: float | None
    first_token_ms: float | None
    engine_ms: float | None  # from the call of the engine to its first token
    total_ms: float
    # Came later: records written before mean the default.
    trigger: Trigger = Trigger.AUTOMATIC
    variant: str = ""  # of an experiment; "": none
    filter_reason: str = ""  # why the filter ended or withheld it; "": it did not
    num_files: int = 0  # of the prompt's other files
    num_snippets: int = 0  # of the prompt's retrieved snippets
    authenticated_ms: float | None = None
    admitted_ms: float | None = None
    routed_ms: float | None = None
    num_in_flight_at_replica: int | None = None  # requests of this gateway there when it was asked

    editor: str = (
        ""  # one of inference.gateway.protocol.user_agent; "": not told, or none that we know
    )
    model: str = ""  # as its pool names it; "": the request never got as far
    num_chars: int = 0  # sent to the client
    num_lines: int = 0  # of those characters, begun ones included
    is_parsed: bool = False  # a parser judged it: that `filter_reason` is not syntax says something


class OutcomeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="outcome"):
    outcome_id: RequestId  # an id of its own, so that ingest counts it once
    request_id: RequestId
    tenant_id: TenantId
    user_id: UserId | None
    occurred_at_ms: int
    event: OutcomeEvent
    chars: int  # shown, accepted, or still there; never more than was suggested
    # Since the suggestion was shown: how long it stood there. Of persisted: since it was accepted.
    after_ms: int
    # Came later.
    lines: int = 0  # of those characters
    # Of persisted: which of SPANS_S had gone by, and the edit distance between what was accepted
    # and what stands there now, as a share of what was accepted, 0 to 1. None: of other events.
    span_s: int | None = None
    edited_ratio: float | None = None


class LateOutcomeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="belated"):
    """An outcome that a gateway was told of a completion that it does not know. It counts as an
    OutcomeRecord if the completion is found at ingest, was the same user's (of a service: the same
    key's), and was not told this before."""

    outcome_id: RequestId
    request_id: RequestId  # as the client says it
    tenant_id: TenantId
    user_id: UserId | None
    key_id: KeyId
    occurred_at_ms: int
    event: OutcomeEvent
    after_ms: int
    chars: int | None  # None: all that was suggested
    lines: int | None
    span_s: int | None
    edited_ratio: float | None


class TypingRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="typed"):
    """Characters typed by hand in one language since the client last told."""

    typed_id: RequestId  # an id of its own, so that ingest counts it once
    tenant_id: TenantId
    user_id: UserId | None
    occurred_at_ms: int
    language: str
    editor: str
    chars: int


UsageRecord = CompletionRecord | OutcomeRecord | LateOutcomeRecord | TypingRecord

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[UsageRecord])


def encode_records(records: list[UsageRecord]) -> bytes:
    return _encoder.encode(records)


def decode_records(data: bytes) -> list[UsageRecord]:
    """Raises msgspec.ValidationError (or DecodeError) when one of them is not a usage record."""
    return _decoder.decode(data)
