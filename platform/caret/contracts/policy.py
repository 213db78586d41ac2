"""A tenant's effective policy, as the data plane reads it."""

from enum import StrEnum
from typing import Final

import msgspec

ANY_LANGUAGE: Final = "*"  # all languages without an entry of their own


class Mode(StrEnum):
    """A kind of completion that a client may request."""

    INLINE = "inline"  # short: one line, or a block if the line opens one
    FIM = "fim"  # fill-in-the-middle; the client decides where it ends
    BLOCK = "block"  # a whole block or function body
    DOCSTRING = "docstring"
    CHAT = "chat"
    EDIT = "edit"  # a replacement of lines near the cursor, proposed from recent edits


class Trigger(StrEnum):
    """The cause of a request. Under load, prefetches are rejected first."""

    PREFETCH = "prefetch"  # the user does not wait for it yet
    AUTOMATIC = "automatic"  # a pause in typing
    MANUAL = "manual"  # the user asked for it, for instance with a keyboard shortcut


class Feature(StrEnum):
    """A feature that can be off for a team or a user: a mode, retrieval or experiments."""

    INLINE = "inline"
    FIM = "fim"
    BLOCK = "block"
    DOCSTRING = "docstring"
    CHAT = "chat"
    EDIT = "edit"
    RETRIEVAL = "retrieval"
    EXPERIMENTS = "experiments"


class Tier(StrEnum):
    FAST = "fast"
    QUALITY = "quality"


class Isolation(StrEnum):
    SHARED = "shared"  # one cache namespace for the whole tenant
    STRICT = "strict"  # one cache namespace for each user and each service key


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    per_minute: int  # requests, sustained; at least 1
    burst: int  # requests that may come at once after a pause; at least 1


class PolicyLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rate limits and token quotas; None means no limit of this kind."""

    tenant: RateLimit | None = None  # all of the tenant's requests, on all gateways
    user: RateLimit | None = None  # for each user
    key: RateLimit | None = None  # for each API key
    # Prompt tokens and generated tokens of the tenant in a UTC day, on all gateways. A tier that is
    # missing has no limit.
    tokens_per_day: dict[Tier, int] = {}


class ContentCapturePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tenant's permission for content capture, to which each user may consent."""

    consent_text: str  # version of the text that the tenant has agreed to, e.g. "tenant-1"
    retention_days: int  # at least 1; captured content is erased afterwards
    training: bool = False  # users may also consent to training on captured content


class TenantPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tenant's effective policy.

    Fields with a default were added later, and stored policies without them have the default. A
    snapshot leaves out fields that hold their default, so older gateways can read policies that do
    not use them.
    """

    features: frozenset[Mode]  # modes that are not listed are refused
    # Repository name (or "*" for all) -> globs of files that must never reach a prompt.
    content_exclusion: dict[str, tuple[str, ...]]
    max_concurrent_completions: int  # of the whole tenant, on one gateway; at least 1
    isolation: Isolation
    limits: PolicyLimits = PolicyLimits()
    # Globs of repository names whose files may be indexed for retrieval; empty: nothing is indexed.
    # The files are stored encrypted. They are erased when their retention ends, or as soon as no
    # glob matches their repository.
    retrieval: tuple[str, ...] = ()
    has_experiments: bool = True  # requests may take part in the operator's experiments
    has_secret_filter: bool = True  # withholds completions that look like credentials
    has_public_code_filter: bool = False  # withholds code that is in the index of public code
    # None: no content is captured, even with users' consent.
    content_capture: ContentCapturePolicy | None = None
    # Longest lifetime of a new API key; None: the creator of the key chooses.
    max_key_lifetime_days: int | None = None
    # API keys unused for this many days are revoked; None: never.
    revoke_idle_keys_after_days: int | None = None
    models: frozenset[str] | None = None  # allowed models, by name; None: all
    regions: frozenset[str] | None = None  # regions of allowed gateways; None: all
    # Data class -> days of retention; for other classes the platform's retention applies.
    retention_days: dict[str, int] = {}
    is_mfa_required: bool = False  # a second factor, for users who sign in with a password
    requires_path: bool = False  # requests that do not name their file are refused
    # Tier -> language (or ANY_LANGUAGE) -> the model for requests that name no model. A model that
    # is not available, or not among `models`, is ignored.
    default_models: dict[Tier, dict[str, str]] = {}
    allows_own_keys: bool = True  # members may create API keys for themselves


class PolicyOverride(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Further restrictions of the policy for one team or one user.

    An override can only restrict (see caret.contracts.policy_override). A field at its default
    restricts nothing.
    """

    features: frozenset[Feature] | None = None  # features that stay on; None: all
    models: frozenset[str] | None = None  # allowed models, by name; None: all
    regions: frozenset[str] | None = None  # regions of allowed gateways; None: all
    # Globs in addition to those of the policy, and in the same form.
    content_exclusion: dict[str, tuple[str, ...]] = {}
    has_secret_filter: bool = False
    has_public_code_filter: bool = False
    user_limit: RateLimit | None = None  # for each user
    key_limit: RateLimit | None = None  # for each API key
    max_key_lifetime_days: int | None = None
    is_mfa_required: bool = False
