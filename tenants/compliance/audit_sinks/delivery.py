"""What both ways of delivering have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext_noop

from caret.foundation.egress.egress_policy import Egress
from caret.foundation.special_addresses import Network
from tenants.compliance.audit_sinks.endpoint import SinkAddress

TIMEOUT_S: Final = 5.0  # of one message's answer, and of a connection
REFUSED: Final = gettext_noop(
    "The address is neither public nor in one of the operator's allowed networks."
)
BROKEN: Final = gettext_noop("The delivery failed because of an error on our side.")
UNREACHABLE: Final = gettext_noop("The receiver is not reachable.")
UNKNOWN: Final = gettext_noop("The host name does not resolve.")
UNTRUSTED: Final = gettext_noop("The TLS certificate is not valid.")
SILENT: Final = gettext_noop("The receiver did not respond in time.")
ANSWERED: Final = gettext_noop("The receiver responded with status %(status)s.")


class SinkDeliveryError(Exception):
    """The text is for the tenant's people: our own words, nothing that the sink has said."""


@dataclass(frozen=True, slots=True)
class Destination:
    address: SinkAddress
    secret: str | None = field(repr=False)  # None: syslog has none
    networks: Sequence[Network]

    def egress(self) -> Egress:
        return Egress(self.networks, is_encrypted=self.address.is_encrypted)
