"""Experiments: variants of prompt layout, prompt shares, ranking and filter.

Each variant serves a part of the users. Operators start and stop experiments at run time. The
control plane writes the experiments to Redis, and gateways follow the changes:

    caret:experiments           hash     name -> encoded ExperimentChange; stopped ones remain
    caret:experiments:version   counter  incremented by each change; gateways poll it
    caret:experiments:changed   channel  the new version; wakes gateways at once
    caret:experiments:log       list     encoded ExperimentChange, newest first, of bounded length
"""

from typing import Final

import msgspec

EXPERIMENTS: Final = "caret:experiments"
EXPERIMENTS_VERSION: Final = "caret:experiments:version"
EXPERIMENTS_CHANGED: Final = "caret:experiments:changed"
EXPERIMENTS_LOG: Final = "caret:experiments:log"
# The values that a variant may have. Packages of `inference` define their meaning.
LAYOUTS: Final = ("stable", "efim", "spm", "spm2", "psm", "psm-sliding", "spm-sliding")
RANKINGS: Final = ("recency", "similarity")  # of other files
FILTERS: Final = ("syntax", "plain")
# Shares of a prompt's token budget, 0 to 1. Other files and the suffix leave the rest to snippets
# and the prefix.
DEFAULT_FILES_SHARE: Final = 0.3
DEFAULT_SUFFIX_SHARE: Final = 0.2
MAX_SHARES: Final = 0.65  # of both together: snippets keep 0.1, and the prefix at least 0.25


class VariantEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    weight: int = 1  # share of the users, relative to the other variants; at least 1
    # In this and the following fields, None means the same value as without the experiment.
    layout: str | None = None  # one of LAYOUTS
    ranking: str | None = None  # one of RANKINGS
    files_share: float | None = None  # 0 or more; both shares together at most MAX_SHARES
    suffix_share: float | None = None
    filter: str | None = None  # one of FILTERS


class ExperimentChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # version of this struct: SCHEMA
    name: str
    # Slugs of tenants; empty: all. Tenants whose policy forbids experiments never take part.
    tenants: tuple[str, ...]
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
    """Decode a change whose schema is SCHEMA.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        experiment = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if experiment.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {experiment.schema}, not {SCHEMA}")
    return experiment
