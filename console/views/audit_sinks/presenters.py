"""Presentation of audit sinks."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.texts.delivery_errors import translate_delivery_error
from tenants.compliance.audit_sinks.endpoint import SinkKind
from tenants.compliance.audit_sinks.queries import SinkView


@dataclass(frozen=True, slots=True)
class SinkRow:
    sink: SinkView
    kind_name: str | Promise  # Webhook or Syslog
    badge_kind: str  # kind of the <c-badge> that shows the state
    state: Promise
    error: str  # error of the last attempt; "": none


def row_of(sink: SinkView) -> SinkRow:
    kind_name = _("Webhook") if sink.kind is SinkKind.WEBHOOK else _("Syslog")
    badge_kind, state = _state_of(sink)
    error = translate_delivery_error(sink.last_error)
    return SinkRow(sink, kind_name, badge_kind, state, error)


def _state_of(sink: SinkView) -> tuple[str, Promise]:
    """Return the kind of the badge, and its text."""
    if sink.failed_since is not None:
        return "bad", _("Failing")
    if sink.num_waiting:
        return "busy", _("Catching up")
    if sink.delivered_at is None:
        return "off", _("Nothing sent yet")
    return "good", _("Up to date")
