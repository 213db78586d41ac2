"""A policy override as JSON: parsing, validation, serialization, within a policy's bounds."""

from typing import Any

import msgspec

from caret.contracts.policy import PolicyOverride
from tenants.policy.document import (
    check_days,
    check_exclusions,
    check_names,
    check_rate,
    convert,
)


def read_layer(document: object) -> PolicyOverride:
    """Parse an override. Raises InvalidValue, which names the field and the valid values."""
    layer = convert(document, PolicyOverride, name="override")
    check_names("models", layer.models)
    check_names("regions", layer.regions)
    check_exclusions(layer.content_exclusion)
    check_rate("user_limit", layer.user_limit)
    check_rate("key_limit", layer.key_limit)
    check_days("max_key_lifetime_days", layer.max_key_lifetime_days)
    return layer


def write_layer(layer: PolicyOverride) -> dict[str, Any]:
    """Serialize an override, without the fields that it does not set."""
    document: dict[str, Any] = msgspec.to_builtins(layer, order="deterministic")
    return document
