"""The port to Stripe, with its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MeterEvent:
    """Tokens of a customer, which one of Stripe's meters counts."""

    identifier: str  # unique; Stripe remembers it for at least 24 hours
    event_name: str  # selects the meter
    customer_id: str  # Stripe's ID
    quantity: int  # tokens
    occurred_at: datetime


class StripeFailed(Exception):
    """A call to Stripe failed. The message gives the reason, and contains no secret."""


class StripeUnreachable(StripeFailed):
    """Stripe did not process the request (unreachable, or status 409 or 429): retry."""


class StripeOutcomeUnknown(StripeFailed):
    """Stripe may have processed the request: retry for a limited time.

    A repetition is safe while Stripe remembers the identifier or idempotency key.
    """


class StripeRejected(StripeFailed):
    """Stripe rejected the request, or a list that it returned has too many pages: do not retry."""


class Stripe(Protocol):
    def create_customer(self, *, idempotency_key: str, name: str, tenant_id: str) -> str:
        """Create a customer and return its ID at Stripe.

        The same idempotency key gives the same ID for at least 24 hours. Raises StripeFailed.
        """

    def send_event(self, event: MeterEvent) -> None:
        """Send an event. Raises StripeFailed.

        Nothing changes if Stripe already has the event and still remembers its identifier.
        """

    def read_totals(
        self, *, customer_id: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        """Return the customer's total of each meter, by event name. Raises StripeFailed.

        The period ends before `until`. Both times must be whole minutes.
        """
