"""`{% operators_asset NAME %}`: the address of a file of the operators' pages; and how they write
shares, times and what is not known."""

from typing import Final

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from console.operator_admin.static_files import url_of
from console.usage_filters.number_format import share
from tenants.fleet.pools.pool_status import RejectedReplica

register = template.Library()
UNKNOWN: Final = "–"
_WHOLE_MS: Final = 100.0
_WHY_REFUSED: Final = {
    "place": _("The catalogue allows no replica at %(found)s, only in: %(wanted)s."),
    "address": _("Its name leads nowhere."),
    "silent": _("Nobody answers there."),
    "unsaid": _("It does not say which models it serves."),
    "model": _("It serves %(found)s, not %(wanted)s."),
    "version": _("It serves %(found)s, and the others %(wanted)s."),
    "context": _("It takes %(found)s tokens, and the pool says %(wanted)s."),
    "tokenizer": _("It splits text in other tokens than %(wanted)s does."),
    "block_size": _("Its cache has blocks of %(found)s tokens, not of %(wanted)s."),
}


def written(value: float, digits: int) -> str:
    """In the reader's language; rounded first, as Django's own cuts off what is too much."""
    return number_format(round(value, digits), digits, force_grouping=True)


@register.simple_tag
def operators_asset(name: str) -> str:
    return url_of(name)


@register.filter
def percent(value: float | None) -> str:
    """0.934 -> 93.4%, in the reader's language."""
    return UNKNOWN if value is None else share(value)


@register.filter
def whole_percent(share: float) -> int:
    """Of a meter, which is full at 100."""
    return max(0, min(100, round(share * 100)))


@register.filter
def milliseconds(value_ms: float | None) -> str:
    if value_ms is None:
        return UNKNOWN
    digits = 1 if value_ms < _WHOLE_MS else 0
    return f"{written(value_ms, digits)} ms"


@register.filter
def count(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else written(value, digits)


@register.filter
def unlocalized(value: float) -> str:
    """For a script: a point in every language."""
    return f"{value:g}"


@register.filter
def why_refused(refused: RejectedReplica) -> str:
    words = _WHY_REFUSED.get(refused.reason)
    if words is None:  # a newer gateway's
        return refused.reason
    return str(words) % {"found": refused.found, "wanted": refused.wanted}
