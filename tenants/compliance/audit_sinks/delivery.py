"""The destination, time limit and errors of a delivery, by webhook or by syslog."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext_noop

from caret.foundation.egress.egress_policy import Egress
from caret.foundation.special_addresses import Network
from tenants.compliance.audit_sinks.endpoint import SinkAddress

TIMEOUT_S: Final = 5.0  # for a webhook message with its response, or for a syslog connection
# The texts of SinkDeliveryError.
ADDRESS_NOT_ALLOWED: Final = gettext_noop(
    "The address is neither public nor in one of the operator's allowed networks."
)
INTERNAL_ERROR: Final = gettext_noop("The delivery failed because of an error on our side.")
UNREACHABLE: Final = gettext_noop("The receiver is not reachable.")
UNKNOWN_HOST: Final = gettext_noop("The host name does not resolve.")
BAD_CERTIFICATE: Final = gettext_noop("The TLS certificate is not valid.")
TLS_FAILED: Final = gettext_noop("A TLS connection could not be established.")
SILENT: Final = gettext_noop("The receiver did not respond in time.")
BAD_STATUS: Final = gettext_noop("The receiver responded with status %(status)s.")


class SinkDeliveryError(Exception):
    """The delivery failed. Members of the tenant see the text.

    It contains nothing from the receiver, except the status of an HTTP response.
    """


@dataclass(frozen=True, slots=True)
class Destination:
    address: SinkAddress
    secret: str | None = field(repr=False)  # signs webhook messages; None: syslog
    networks: Sequence[Network]  # private networks that the operator allows

    def make_egress(self) -> Egress:
        return Egress(self.networks, is_encrypted=self.address.is_encrypted)
