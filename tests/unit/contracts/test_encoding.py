"""Structs between control plane and gateways: decoding returns the encoded value or fails."""

import msgspec
import pytest

from caret.contracts.api_key import Credential, KeyKind
from caret.contracts.policy import Isolation, Mode, TenantPolicy, Tier
from caret.contracts.snapshot import (
    TenantSnapshot,
    TenantStatus,
    decode_snapshot,
    encode_snapshot,
)
from caret.contracts.usage import (
    CompletionRecord,
    FinishReason,
    OutcomeEvent,
    OutcomeRecord,
    UsageRecord,
    decode_records,
    encode_records,
)
from caret.foundation.ids import KeyId, LookupId, RequestId, TenantId

SNAPSHOT = TenantSnapshot(
    schema=1,
    tenant_id=TenantId("t"),
    slug="acme",
    version=3,
    status=TenantStatus.ACTIVE,
    cache_epoch=0,
    policy=TenantPolicy(
        features=frozenset(Mode),
        content_exclusion={"*": ("*.env",)},
        max_concurrent_completions=8,
        isolation=Isolation.SHARED,
    ),
    credentials=(
        Credential(
            key_id=KeyId("k"),
            lookup_id=LookupId("Ab3dE6gH"),
            digest=b"d" * 32,
            pepper_version=1,
            kind=KeyKind.TEST,
            user_id=None,
            expires_at_ms=None,
            revoked_at_ms=5,
        ),
    ),
)
COMPLETION = CompletionRecord(
    request_id=RequestId("r"),
    tenant_id=TenantId("t"),
    user_id=None,
    key_id=KeyId("k"),
    occurred_at_ms=1,
    protocol="stream",
    mode=Mode.INLINE,
    language="python",
    tier=Tier.FAST,
    pool="p",
    replica="p-0",
    finish_reason=FinishReason.STOP,
    error_code="",
    prompt_tokens=1,
    cached_tokens=0,
    generated_tokens=1,
    assemble_ms=1.0,
    first_token_ms=2.0,
    engine_ms=1.0,
    total_ms=3.0,
)
OUTCOME = OutcomeRecord(
    outcome_id=RequestId("o"),
    request_id=RequestId("r"),
    tenant_id=TenantId("t"),
    user_id=None,
    occurred_at_ms=2,
    event=OutcomeEvent.ACCEPTED,
    chars=12,
    after_ms=900,
)


def test_a_snapshot_survives_encoding_and_decoding() -> None:
    assert decode_snapshot(encode_snapshot(SNAPSHOT)) == SNAPSHOT


def test_completion_and_outcome_records_survive_encoding_and_decoding() -> None:
    records: list[UsageRecord] = [COMPLETION, OUTCOME]

    assert decode_records(encode_records(records)) == records


def test_a_snapshot_with_an_unknown_field_is_rejected() -> None:
    document = msgspec.to_builtins(SNAPSHOT, builtin_types=(bytes,)) | {"surprise": 1}

    with pytest.raises(msgspec.ValidationError):
        decode_snapshot(msgspec.msgpack.encode(document))


def test_a_snapshot_that_lacks_a_field_is_rejected() -> None:
    document = msgspec.to_builtins(SNAPSHOT, builtin_types=(bytes,))
    del document["status"]

    with pytest.raises(msgspec.ValidationError):
        decode_snapshot(msgspec.msgpack.encode(document))


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        SNAPSHOT.version = 4  # type: ignore[misc]


def test_unused_newer_fields_are_omitted() -> None:
    """A gateway of the previous release can read snapshots that do not use the new fields."""
    document = msgspec.msgpack.decode(encode_snapshot(SNAPSHOT))

    assert not {"overrides", "override_indexes", "spending"} & set(document)
    assert not {"networks", "modes"} & set(document["credentials"][0])
    assert not {"models", "regions", "retention_days", "requires_path"} & set(document["policy"])
    assert {"features", "content_exclusion"} <= set(document["policy"])
