"""Numbers and rejection reasons on the operators' pages."""

from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from tenants.fleet.pools.pool_status import RejectedReplica

_WHY_REFUSED: Final = {
    "place": _("The pool configuration does not allow replicas at %(found)s, only in %(wanted)s."),
    "address": _("The host name does not resolve."),
    "silent": _("The replica does not respond."),
    "unsaid": _("The replica does not report its model."),
    "model": _("The replica serves %(found)s instead of %(wanted)s."),
    "version": _("The replica serves %(found)s, but the other replicas serve %(wanted)s."),
    "context": _(
        "The replica's context length is %(found)s tokens, but the pool requires %(wanted)s."
    ),
    "tokenizer": _("The replica's tokenizer differs from the tokenizer of %(wanted)s."),
    "block_size": _("The replica's cache uses blocks of %(found)s tokens instead of %(wanted)s."),
}


def written(value: float, digits: int) -> str:
    """Return the number in the reader's format. It is rounded first, because Django truncates."""
    return number_format(round(value, digits), digits, force_grouping=True)


def why_refused(refused: RejectedReplica) -> str:
    words = _WHY_REFUSED.get(refused.reason)
    if words is None:  # from a newer gateway
        return refused.reason
    return str(words) % {"found": refused.found, "wanted": refused.wanted}
