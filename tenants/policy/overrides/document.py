"""Parses, validates and serializes policy overrides as JSON. The bounds are those of policies."""

from typing import Any

import msgspec

from caret.contracts.policy import PolicyOverride
from tenants.policy.document import (
    check_days,
    check_exclusions,
    check_names,
    check_rate,
    convert_document,
)


def parse_override(document: object) -> PolicyOverride:
    """Parse an override. Raises InvalidValue, which names the field and says what is valid."""
    override = convert_document(document, PolicyOverride, name="override")
    check_names("models", override.models)
    check_names("regions", override.regions)
    check_exclusions(override.content_exclusion)
    check_rate("user_limit", override.user_limit)
    check_rate("key_limit", override.key_limit)
    check_days("max_key_lifetime_days", override.max_key_lifetime_days)
    return override


def serialize_override(override: PolicyOverride) -> dict[str, Any]:
    """Serialize an override, without the fields that it does not set."""
    document: dict[str, Any] = msgspec.to_builtins(override, order="deterministic")
    return document
