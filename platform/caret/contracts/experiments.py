"""Experiments: variants of layout, budget, ranking and filter, served to a part of the users.

Operators start and stop them at run time. The control plane writes them to Redis, and gateways
follow the changes:

    caret:experiments           hash     name -> encoded ExperimentChange; stopped ones remain
    caret:experiments:version   counter  incremented by each change; gateways poll it
    caret:experiments:changed   channel  the version; wakes gateways at once
    caret:experiments:log       list     encoded ExperimentChange, newest first, of bounded length
"""

from typing import Final

import msgspec

EXPERIMENTS: Final = "caret:experiments"
EXPERIMENTS_VERSION: Final = "caret:experiments:version"
EXPERIMENTS_CHANGED: Final = "caret:experiments:changed"
EXPERIMENTS_LOG: Final = "caret:experiments:log"
# The values that a variant may have, as inference defines them.
LAYOUTS: Final = ("stable", "efim", "spm", "spm2", "psm", "psm-sliding", "spm-sliding")
RANKINGS: Final = ("recency", "similarity")
FILTERS: Final = ("syntax", "plain")
# Shares of a prompt's budget. Files and suffix together leave the rest to snippets and the prefix.
DEFAULT_FILES_SHARE: Final = 0.3
DEFAULT_SUFFIX_SHARE: Final = 0.2
MAX_SHARES: Final = 0.65  # snippets keep 0.1, and the prefix at least 0.25


class VariantEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    weight: int = 1  # share of the users, relative to the other variants; at least 1
    # In this and the following fields, None means the same value as without the experiment.
    layout: str | None = None
    ranking: str | None = None
    files_share: float | None = None  # 0 to 1
    suffix_share: float | None = None  # 0 to 1
    filter: str | None = None


class ExperimentChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # of this struct: 1
    name: str
    tenants: tuple[str, ...]  # slugs; empty: all tenants whose policy allows experiments
    variants: tuple[VariantEntry, ...]
    is_running: bool
    operator: str  # the operator's handle
    reason: str
    at_ms: int  # Unix milliseconds


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ExperimentChange)


def encode_experiment(experiment: ExperimentChange) -> bytes:
    return _encoder.encode(experiment)


def decode_experiment(data: bytes) -> ExperimentChange:
    """Decode a change of this schema.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        experiment = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if experiment.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {experiment.schema}, not {SCHEMA}")
    return experiment
