"""A layer as JSON: read, checked, written, within the bounds of a policy."""

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
    """Raises Invalid, which names the field and what would be right."""
    layer = convert(document, PolicyOverride, name="layer")
    check_names("models", layer.models)
    check_names("regions", layer.regions)
    check_exclusions(layer.content_exclusion)
    check_rate("user_limit", layer.user_limit)
    check_rate("key_limit", layer.key_limit)
    check_days("max_key_lifetime_days", layer.max_key_lifetime_days)
    return layer


def write_layer(layer: PolicyOverride) -> dict[str, Any]:
    """As JSON, what it says and no more."""
    document: dict[str, Any] = msgspec.to_builtins(layer, order="deterministic")
    return document
