"""`{% operators_asset NAME %}`: the URL of an operators' file; and filters for their figures."""

from typing import Final

from django import template

from caret.contracts.policy import Trigger
from console.assets.operator_files import url_of
from console.operator_admin.pools.presenters import rejection_reason
from console.usage_filters.number_format import format_number, format_share
from console.usage_filters.request_labels import TRIGGERS

register = template.Library()
UNKNOWN: Final = "–"
_WHOLE_MS: Final = 100.0


@register.simple_tag
def operators_asset(name: str) -> str:
    return url_of(name)


@register.filter
def percent(value: float | None) -> str:
    """Return 0.934 as 93.4%, in the reader's format."""
    return UNKNOWN if value is None else format_share(value)


@register.filter
def whole_percent(share: float) -> int:
    """Return the fill level of a meter, 0 to 100."""
    return max(0, min(100, round(share * 100)))


@register.filter
def milliseconds(value_ms: float | None) -> str:
    if value_ms is None:
        return UNKNOWN
    digits = 1 if value_ms < _WHOLE_MS else 0
    return f"{format_number(value_ms, digits)} ms"


@register.filter
def count(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else format_number(value, digits)


@register.filter
def unlocalized(value: float) -> str:
    """Return the number for a script: with a decimal point in every language."""
    return f"{value:g}"


@register.filter
def trigger_name(value: str) -> object:
    """Return the name of a trigger, which may be one of a newer gateway."""
    return TRIGGERS.get(Trigger(value), value) if value in set(Trigger) else value


register.filter(rejection_reason)
