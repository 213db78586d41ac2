"""What a tenant allows: the effective policy as the data plane reads it."""

from enum import StrEnum

import msgspec


class Mode(StrEnum):
    """The kinds of request a client may make."""

    INLINE = "inline"  # automatic, short, single line unless the line is fresh
    FIM = "fim"  # explicit fill-in-the-middle, as HTTP clients ask for
    BLOCK = "block"  # a whole block or function body
    DOCSTRING = "docstring"


class Tier(StrEnum):
    FAST = "fast"
    QUALITY = "quality"


class Isolation(StrEnum):
    SHARED = "shared"  # one cache namespace for the tenant's users
    STRICT = "strict"  # one for each user


class TenantPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    features: frozenset[Mode]  # a mode that is not here is refused
    # repository name (or "*" for all) -> fnmatch globs of paths that may not be sent
    content_exclusion: dict[str, tuple[str, ...]]
    max_concurrent_completions: int  # of the whole tenant, on one gateway; at least 1
    isolation: Isolation
