"""The port to Stripe, with its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MeterEvent:
    identifier: str  # unique at Stripe for at least 24 hours
    event_name: str
    customer_id: str
    quantity: int
    occurred_at: datetime


class StripeFailed(Exception):
    """A call to Stripe failed. The message gives the reason, and contains no secret."""


class StripeUnreachable(StripeFailed):
    """Stripe did not receive the request: retry."""


class StripeOutcomeUnknown(StripeFailed):
    """Stripe may have processed the request: retry while Stripe remembers the identifier."""


class StripeRejected(StripeFailed):
    """Stripe rejected the request: do not retry."""


class Stripe(Protocol):
    def create_customer(self, *, key: str, name: str, tenant_id: str) -> str:
        """Create a customer and return its ID. The same `key` always gives the same ID.

        Raises StripeFailed.
        """

    def send_event(self, event: MeterEvent) -> None:
        """Send an event. If Stripe already has it, nothing changes. Raises StripeFailed."""

    def read_totals(
        self, *, customer_id: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        """Return the totals of all meters by event name. Raises StripeFailed."""
