"""The tag and the filters of the operators' pages.

`{% operators_asset NAME %}` is the URL of one of their static files. The filters format figures.
"""

from typing import Final

from django import template

from caret.contracts.policy import Trigger
from console.assets.operator_files import url_of
from console.operator_admin.pools.presenters import rejection_reason
from console.usage_filters.number_format import format_number, format_share
from console.usage_filters.request_labels import TRIGGERS

register = template.Library()
UNKNOWN: Final = "–"
_WHOLE_MS: Final = 100.0  # from here on, milliseconds have no decimals


@register.simple_tag
def operators_asset(name: str) -> str:
    return url_of(name)


@register.filter
def percent(share: float | None) -> str:
    """Return the share 0.934 as 93.4%, in the format of the reader's language."""
    return UNKNOWN if share is None else format_share(share)


@register.filter
def whole_percent(share: float) -> int:
    """Return a share as a whole percentage from 0 to 100, for the bar of a meter."""
    return max(0, min(100, round(share * 100)))


@register.filter
def milliseconds(value_ms: float | None) -> str:
    if value_ms is None:
        return UNKNOWN
    digits = 1 if value_ms < _WHOLE_MS else 0
    return f"{format_number(value_ms, digits)} ms"


@register.filter
def count(value: float | None, digits: int = 0) -> str:
    """Return a number with `digits` decimals, in the format of the reader's language."""
    return UNKNOWN if value is None else format_number(value, digits)


@register.filter
def unlocalized(value: float) -> str:
    """Return a number for HTML attributes and scripts, with a decimal point in every language."""
    return f"{value:g}"


@register.filter
def trigger_name(value: str) -> object:
    """Return the name of a trigger; an unknown trigger, of a newer gateway, unchanged."""
    return TRIGGERS[Trigger(value)] if value in set(Trigger) else value


register.filter(rejection_reason)
