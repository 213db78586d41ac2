"""Rejects engine settings that would let one tenant find data of another tenant.

The prefix cache separates namespaces by the salt in its cache keys. Any other cache of an engine
must have the salt in its cache keys, too, or must be disabled. These rules are based on tests with
vLLM 0.32 and LMCache 0.5.6 (ADR 0029).
"""

from enum import StrEnum
from typing import Final

from caret.foundation.environment import BadSetting

SALTED_CONNECTORS: Final = ("LMCacheMPConnector", "OffloadingConnector")
_ONLY_TOKENS: Final = "its cache keys are hashes of tokens only, so tenants share its blocks"
_REASONS: Final = {
    "LMCacheConnectorV1": f"{_ONLY_TOKENS} (LMCache #2880)",
    "HF3FSKVConnector": _ONLY_TOKENS,
    "ExampleConnector": _ONLY_TOKENS,
}
_UNKNOWN_REASON: Final = "it is not known to include the tenant's salt in its cache keys"


class SpeculationMethod(StrEnum):
    """The methods of speculative decoding."""

    NGRAM = "ngram"
    DRAFT = "draft"
    SUFFIX = "suffix"


def require_isolated_cache(
    *,
    speculation: SpeculationMethod | None,
    max_cached_requests: int | None,
    kv_connector: str | None,
) -> None:
    """Reject the settings if tenants could share cached data.

    `speculation` and `kv_connector` are None if the engine does not use them. `max_cached_requests`
    belongs to suffix decoding: None means vLLM's default of 10,000. Raises BadSetting.
    """
    if speculation is SpeculationMethod.SUFFIX and max_cached_requests != 0:
        raise BadSetting(
            "suffix decoding shares a tree of all completions among tenants; it needs "
            "suffix_decoding_max_cached_requests = 0."
        )
    if kv_connector is not None and kv_connector not in SALTED_CONNECTORS:
        reason = _REASONS.get(kv_connector, _UNKNOWN_REASON)
        raise BadSetting(
            f"the KV connector {kv_connector} is refused: {reason}. "
            f"Allowed are {' and '.join(SALTED_CONNECTORS)}."
        )
