"""What we ask of Stripe, and how it may fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MeterEvent:
    identifier: str  # unique there for 24 hours at least
    event_name: str
    customer_id: str
    quantity: int
    occurred_at: datetime


class StripeFailed(Exception):
    """The text says why, and holds no secret."""


class StripeUnreachable(StripeFailed):
    """It certainly did not take it: to be tried again."""


class StripeOutcomeUnknown(StripeFailed):
    """It may have taken it: to be tried again under the same identifier while that is known."""


class StripeRejected(StripeFailed):
    """It never will take it as it is."""


class Stripe(Protocol):
    def create_customer(self, *, key: str, name: str, tenant_id: str) -> str:
        """Its id; the same one for the same `key`. Raises StripeFailed."""

    def send_event(self, event: MeterEvent) -> None:
        """Also when it had arrived before. Raises StripeFailed."""

    def read_totals(
        self, *, customer_id: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        """By event name, of all meters. Raises StripeFailed."""
