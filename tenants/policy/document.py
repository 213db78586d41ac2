"""Parses, validates and serializes policies as JSON. The bounds limit the size of snapshots."""

from typing import Any, Final, TypeVar

import msgspec

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import (
    ANY_LANGUAGE,
    ContentCapturePolicy,
    Isolation,
    Mode,
    PolicyLimits,
    RateLimit,
    TenantPolicy,
    Tier,
)
from tenants.base.errors import InvalidValue
from tenants.base.validation.text import is_storable
from tenants.policy.data_classes import DATA_CLASSES

MAX_CONCURRENT_COMPLETIONS: Final = 10_000
# Gateways match each request's paths against these globs, one by one.
MAX_EXCLUDED_REPOSITORIES: Final = 200
MAX_EXCLUSIONS: Final = 200  # globs of all repositories together
MAX_GLOB_CHARS: Final = 200  # also of names of repositories, models and regions
# Requests of a rate limit: more than a gateway can serve. (If a field for a rate limit is null, no
# such limit applies.)
MAX_PER_MINUTE: Final = 1_000_000
MAX_BURST: Final = 100_000  # requests of a rate limit at once
MAX_TOKENS_PER_DAY: Final = 10**12
MAX_RETRIEVAL_GLOBS: Final = 50
MAX_CONTENT_RETENTION_DAYS: Final = 365  # of captured content
_MAX_CONSENT_VERSION_CHARS: Final = 40  # of the version of a consent text
MAX_KEY_DAYS: Final = 3_660  # of an API key's lifetime, or without use; about ten years
MAX_NAMES: Final = 100  # of models or regions
Document = TypeVar("Document", bound=msgspec.Struct)

DEFAULT_POLICY: Final = TenantPolicy(
    features=frozenset(Mode),
    content_exclusion={"*": ("**/.env", "**/*.pem", "**/*.key", "**/id_rsa*")},
    max_concurrent_completions=64,
    isolation=Isolation.SHARED,
    # Ten times the rate of a person who types, so it stops only runaway programs.
    limits=PolicyLimits(user=RateLimit(per_minute=1_200, burst=300)),
)


def parse_policy(document: object) -> TenantPolicy:
    """Parse a policy. Raises InvalidValue, which names the field and says what is valid."""
    policy = convert_document(document, TenantPolicy, name="policy")
    _check_bounds(policy)
    return policy


def convert_document(document: object, kind: type[Document], *, name: str) -> Document:
    """Convert a JSON document to a struct.

    Raises InvalidValue, which names the wrong field, or `name` if the whole document is wrong.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        # The text of the error is, for example: Expected `int`, got `str` - at `$.limits.user`
        message, _, path = str(error).partition(" - at `")
        raise InvalidValue(path.removeprefix("$").strip(".`") or name, message) from error


def serialize_policy(policy: TenantPolicy) -> dict[str, Any]:
    """Serialize a policy with all fields and sorted sets. Equal policies have equal documents."""
    return {
        name: msgspec.to_builtins(getattr(policy, name), order="deterministic")
        for name in policy.__struct_fields__
    }


def _check_bounds(policy: TenantPolicy) -> None:
    """Check the bounds of all fields. Raises InvalidValue."""
    if not 1 <= policy.max_concurrent_completions <= MAX_CONCURRENT_COMPLETIONS:
        raise InvalidValue(
            "max_concurrent_completions",
            "Enter a whole number from 1 to {most}.",
            most=MAX_CONCURRENT_COMPLETIONS,
        )
    _check_limits(policy.limits)
    check_exclusions(policy.content_exclusion)
    _check_retrieval(policy.retrieval)
    if policy.content_capture is not None:
        _check_content_capture(policy.content_capture)
    for field in ("max_key_lifetime_days", "revoke_idle_keys_after_days"):
        check_days(field, getattr(policy, field))
    check_names("models", policy.models)
    check_names("regions", policy.regions)
    _check_default_models(policy.default_models)
    _check_retention(policy.retention_days)


def check_names(field: str, names: frozenset[str] | None) -> None:
    """Check the number and length of names; None: all names. Raises InvalidValue."""
    if names is None:
        return
    are_valid = all(1 <= len(name) <= MAX_GLOB_CHARS and is_storable(name) for name in names)
    if len(names) > MAX_NAMES or not are_valid:
        raise InvalidValue(
            field,
            "Enter at most {most} names of 1 to {most_chars} characters, or null for all.",
            most=MAX_NAMES,
            most_chars=MAX_GLOB_CHARS,
        )


def _check_default_models(defaults: dict[Tier, dict[str, str]]) -> None:
    for tier, name_by_language in defaults.items():
        for language in name_by_language:
            if language not in {ANY_LANGUAGE, *LANGUAGES}:
                raise InvalidValue(
                    f"default_models.{tier}",
                    'Use identifiers of languages, such as python, or "*" for all others.',
                )
        check_names(f"default_models.{tier}", frozenset(name_by_language.values()))


def _check_retention(days_by_class: dict[str, int]) -> None:
    terms_by_name = {
        data_class.value: terms
        for data_class, terms in DATA_CLASSES.items()
        if terms.is_overridable
    }
    for name, days in days_by_class.items():
        if name not in terms_by_name:
            raise InvalidValue(
                "retention_days", "Use these data classes: {names}.", names=", ".join(terms_by_name)
            )
        if not terms_by_name[name].min_days <= days <= terms_by_name[name].max_days:
            raise InvalidValue(
                f"retention_days.{name}",
                "Enter a number of days from {least} to {most}.",
                least=terms_by_name[name].min_days,
                most=terms_by_name[name].max_days,
            )


def check_days(field: str, days: int | None) -> None:
    """Check the days that API keys may live or stay unused; None: no limit. Raises InvalidValue."""
    if days is not None and not 1 <= days <= MAX_KEY_DAYS:
        raise InvalidValue(
            field, "Enter a number of days from 1 to {most}, or null.", most=MAX_KEY_DAYS
        )


def _check_limits(limits: PolicyLimits) -> None:
    for name, limit in (("tenant", limits.tenant), ("user", limits.user), ("key", limits.key)):
        check_rate(f"limits.{name}", limit)
    for tier, tokens in limits.tokens_per_day.items():
        _check_number(f"limits.tokens_per_day.{tier}", tokens, MAX_TOKENS_PER_DAY)


def check_rate(field: str, limit: RateLimit | None) -> None:
    """Check the bounds of a rate limit. Raises InvalidValue."""
    if limit is not None:
        _check_number(f"{field}.per_minute", limit.per_minute, MAX_PER_MINUTE)
        _check_number(f"{field}.burst", limit.burst, MAX_BURST)


def _check_number(field: str, number: int, at_most: int) -> None:
    if not 1 <= number <= at_most:
        raise InvalidValue(
            field,
            "Enter a whole number from 1 to {at_most}, or omit the limit.",
            at_most=at_most,
        )


def _check_content_capture(content_capture: ContentCapturePolicy) -> None:
    if not 1 <= content_capture.retention_days <= MAX_CONTENT_RETENTION_DAYS:
        raise InvalidValue(
            "content_capture.retention_days",
            "Enter a whole number from 1 to {most}.",
            most=MAX_CONTENT_RETENTION_DAYS,
        )
    if len(content_capture.consent_text) > _MAX_CONSENT_VERSION_CHARS or not is_storable(
        content_capture.consent_text
    ):
        raise InvalidValue(
            "content_capture.consent_text", "Enter the version of the current consent text."
        )


def check_exclusions(exclusion: dict[str, tuple[str, ...]]) -> None:
    """Check the number and length of content exclusions. Raises InvalidValue."""
    globs = [glob for globs in exclusion.values() for glob in globs]
    if len(exclusion) > MAX_EXCLUDED_REPOSITORIES or len(globs) > MAX_EXCLUSIONS:
        raise InvalidValue(
            "content_exclusion",
            "Enter at most {most_repositories} repositories and {most} patterns.",
            most_repositories=MAX_EXCLUDED_REPOSITORIES,
            most=MAX_EXCLUSIONS,
        )
    for text in (*exclusion, *globs):
        if not 1 <= len(text) <= MAX_GLOB_CHARS or not is_storable(text):
            raise InvalidValue(
                "content_exclusion",
                "Enter names and patterns of 1 to {most} characters.",
                most=MAX_GLOB_CHARS,
            )


def _check_retrieval(globs: tuple[str, ...]) -> None:
    are_valid = all(1 <= len(glob) <= MAX_GLOB_CHARS and is_storable(glob) for glob in globs)
    if len(globs) > MAX_RETRIEVAL_GLOBS or not are_valid:
        raise InvalidValue(
            "retrieval",
            "Enter at most {most} repository patterns of 1 to {most_chars} characters each.",
            most=MAX_RETRIEVAL_GLOBS,
            most_chars=MAX_GLOB_CHARS,
        )
