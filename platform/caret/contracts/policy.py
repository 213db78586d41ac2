"""What a tenant allows: the effective policy as the data plane reads it."""

from enum import StrEnum

import msgspec


class Mode(StrEnum):
    """The kinds of request a client may make."""

    INLINE = "inline"  # automatic, short: a line, or a block where one begins
    FIM = "fim"  # explicit fill-in-the-middle, as HTTP clients ask for
    BLOCK = "block"  # a whole block or function body
    DOCSTRING = "docstring"
    CHAT = "chat"


class Trigger(StrEnum):
    """What made the client ask; under load the first is dropped first."""

    PREFETCH = "prefetch"  # nobody waits for it yet
    AUTOMATIC = "automatic"  # a pause in typing
    MANUAL = "manual"  # somebody pressed a key for it


class Feature(StrEnum):
    """What can be on or off for a team or a user: the modes, by their names, and these."""

    INLINE = "inline"
    FIM = "fim"
    BLOCK = "block"
    DOCSTRING = "docstring"
    CHAT = "chat"
    RETRIEVAL = "retrieval"
    EXPERIMENTS = "experiments"


class Tier(StrEnum):
    FAST = "fast"
    QUALITY = "quality"


class Isolation(StrEnum):
    SHARED = "shared"  # one cache namespace for the tenant's users
    STRICT = "strict"  # one for each user


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    per_minute: int  # requests, sustained; at least 1
    burst: int  # requests at once, beyond the sustained rate; at least 1


class PolicyLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None: no limit of this kind."""

    tenant: RateLimit | None = None  # all of the tenant's requests, on all gateways
    user: RateLimit | None = None  # of each user
    key: RateLimit | None = None  # of each key
    # Prompt and generated tokens of the tenant in a UTC day, on all gateways.
    tokens_per_day: dict[Tier, int] = {}


class Telemetry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That users may let content of their completions be kept; each decides for himself."""

    wording: str  # the version of what the tenant has agreed to, e.g. "tenant-1"
    retention_days: int  # at least 1; what was kept is erased afterwards
    training: bool = False  # users may also agree that it trains models


class TenantPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Fields with a default came later: a policy that was stored without them means the default,
    and a snapshot leaves out those that say nothing, so that gateways which do not know them read
    the policies of all who do not use them."""

    features: frozenset[Mode]  # a mode that is not here is refused
    # repository name (or "*" for all) -> fnmatch globs of paths that may not be sent
    content_exclusion: dict[str, tuple[str, ...]]
    max_concurrent_completions: int  # of the whole tenant, on one gateway; at least 1
    isolation: Isolation
    limits: PolicyLimits = PolicyLimits()
    # Globs of repository names whose files may be indexed for retrieval, and kept, encrypted, while
    # they are in here; none by default.
    retrieval: tuple[str, ...] = ()
    has_experiments: bool = True  # of prompt layouts and filters, never of data
    has_secret_filter: bool = True  # completions that look like credentials
    has_public_code_filter: bool = False  # completions found in the operator's index of public code
    telemetry: Telemetry | None = None  # None: no content is kept, whoever agrees
    # Days for which a key's text may be good; None: as many as its maker says.
    max_key_lifetime_days: int | None = None
    # Keys that nobody has used for so many days are revoked; None: none are.
    revoke_idle_keys_after_days: int | None = None
    models: frozenset[str] | None = None  # that may complete, by name; None: all
    regions: frozenset[str] | None = None  # whose gateways may complete; None: all
    # Data class -> days for which it is kept; one that is not here is kept as the platform has it.
    retention_days: dict[str, int] = {}
    is_mfa_required: bool = False  # of everybody who signs in
    requires_path: bool = False  # requests that do not name their file are refused


class PolicyOverride(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is said of a team or a user beyond the tenant's policy. It only takes away, see
    `restriction`; a field that is not there says nothing."""

    features: frozenset[Feature] | None = None  # that stay on; None: all
    models: frozenset[str] | None = None  # that may complete; None: all
    regions: frozenset[str] | None = None  # whose gateways may complete; None: all
    content_exclusion: dict[str, tuple[str, ...]] = {}  # besides the tenant's
    has_secret_filter: bool = False
    has_public_code_filter: bool = False
    user_limit: RateLimit | None = None  # of each user
    key_limit: RateLimit | None = None  # of each key
    max_key_lifetime_days: int | None = None
    is_mfa_required: bool = False
