"""What both ways of delivering have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from caret.foundation.egress import Egress, Network
from tenants.siem.address import SinkAddress

TIMEOUT_S: Final = 5.0  # of one message's answer, and of a connection
REFUSED: Final = "Its address is neither public nor one of the operator's networks."
BROKEN: Final = "It could not be delivered to, for a reason on our side."
UNREACHABLE: Final = "It cannot be reached."
UNKNOWN: Final = "Its name is not known."
UNTRUSTED: Final = "Its certificate does not hold."
SILENT: Final = f"It did not answer within {TIMEOUT_S:.0f} s."


class NotDelivered(Exception):
    """The text is for the tenant's people: our own words, nothing that the sink has said."""


@dataclass(frozen=True, slots=True)
class Destination:
    address: SinkAddress
    secret: str | None = field(repr=False)  # None: syslog has none
    networks: Sequence[Network]

    def egress(self) -> Egress:
        return Egress(self.networks, is_encrypted=self.address.is_encrypted)
