"""Numbers and rejection reasons on the operators' pages."""

from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from tenants.fleet.pools.pool_status import RejectedReplica

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
    """Return the number in the reader's format. It is rounded first, because Django truncates."""
    return number_format(round(value, digits), digits, force_grouping=True)


def why_refused(refused: RejectedReplica) -> str:
    words = _WHY_REFUSED.get(refused.reason)
    if words is None:  # from a newer gateway
        return refused.reason
    return str(words) % {"found": refused.found, "wanted": refused.wanted}
