"""Numbers and reasons as the operators' pages write them."""

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
    """In the reader's language; rounded first, as Django's own cuts off what is too much."""
    return number_format(round(value, digits), digits, force_grouping=True)


def why_refused(refused: RejectedReplica) -> str:
    words = _WHY_REFUSED.get(refused.reason)
    if words is None:  # a newer gateway's
        return refused.reason
    return str(words) % {"found": refused.found, "wanted": refused.wanted}
