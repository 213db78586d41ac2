"""Settings of an engine by which one tenant could find what another has left: they are refused.

The prefix cache keeps namespaces apart by the salt in its keys. Whatever else an engine remembers
must hold the salt in its keys, too, or remember nothing. What is known of vLLM 0.32 and LMCache
0.5.6 was tried, not read: see ADR 0029.
"""

from enum import StrEnum
from typing import Final

from caret.foundation.environment import BadSetting

SALTED_CONNECTORS: Final = ("LMCacheMPConnector", "OffloadingConnector")
_REASONS: Final = {
    "LMCacheConnectorV1": "its keys are hashes of tokens alone (LMCache #2880): tenants share them",
    "HF3FSKVConnector": "its keys are hashes of tokens alone: tenants share them",
    "ExampleConnector": "its keys are hashes of tokens alone: tenants share them",
}
_UNKNOWN_REASON: Final = "nobody has shown that its keys hold the tenant's salt"


class SpeculationMethod(StrEnum):
    NGRAM = "ngram"
    DRAFT = "draft"
    SUFFIX = "suffix"


def require_isolated_cache(
    *,
    speculation: SpeculationMethod | None,
    max_cached_requests: int | None,
    kv_connector: str | None,
) -> None:
    """None: not used; of `max_cached_requests`: as vLLM has it, 10,000. Raises BadSetting."""
    if speculation is SpeculationMethod.SUFFIX and max_cached_requests != 0:
        raise BadSetting(
            "suffix decoding keeps a tree of all completions that knows no tenants; it needs "
            "suffix_decoding_max_cached_requests = 0."
        )
    if kv_connector is not None and kv_connector not in SALTED_CONNECTORS:
        reason = _REASONS.get(kv_connector, _UNKNOWN_REASON)
        raise BadSetting(
            f"the KV connector {kv_connector} is refused: {reason}. "
            f"Allowed are {' and '.join(SALTED_CONNECTORS)}."
        )
