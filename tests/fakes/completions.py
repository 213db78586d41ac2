"""Completion records with the fields that a test sets, and defaults for the others."""

from typing import Any, Final

from caret.contracts.policy import Mode, Tier
from caret.contracts.usage import CompletionRecord, FinishReason
from caret.foundation.ids import KeyId, RequestId, TenantId, UserId

_DEFAULTS: Final[dict[str, Any]] = {
    "request_id": RequestId("0199aaaa-0000-7000-8000-000000000001"),
    "tenant_id": TenantId("0199aaaa-0000-7000-8000-000000000002"),
    "user_id": UserId("0199aaaa-0000-7000-8000-000000000004"),
    "key_id": KeyId("0199aaaa-0000-7000-8000-000000000003"),
    "occurred_at_ms": 1_763_728_200_123,
    "protocol": "stream",
    "mode": Mode.INLINE,
    "language": "python",
    "tier": Tier.FAST,
    "pool": "fast",
    "replica": "10.0.0.1:8000",
    "finish_reason": FinishReason.STOP,
    "error_code": "",
    "prompt_tokens": 1_900,
    "cached_tokens": 1_880,
    "generated_tokens": 12,
    "authenticated_ms": 0.2,
    "admitted_ms": 0.4,
    "assemble_ms": 2.4,
    "routed_ms": 2.5,
    "engine_ms": 40.0,
    "first_token_ms": 43.0,
    "total_ms": 120.0,
    "num_in_flight_at_replica": 1,
}


def make_completion(**fields: Any) -> CompletionRecord:
    return CompletionRecord(**{**_DEFAULTS, **fields})


def make_slow_completion(first_token_ms: float, **fields: Any) -> CompletionRecord:
    """Return a completion whose other durations fit the time of its first token."""
    # As in _DEFAULTS, the engine is called after less than 3 ms.
    durations = {"engine_ms": first_token_ms - 3, "total_ms": first_token_ms + 80}
    return make_completion(first_token_ms=first_token_ms, **{**durations, **fields})
