"""Adapter for four endpoints of Stripe's HTTP API, without Stripe's library."""

import base64
import http.client
from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tenants.billing.stripe.port import (
    MeterEvent,
    StripeFailed,
    StripeOutcomeUnknown,
    StripeRejected,
    StripeUnreachable,
)

_TIMEOUT_S: Final = 10.0
_MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
_API_VERSION: Final = "2025-03-31.basil"
# If an error has this code, or if its message starts with this text, Stripe already has an event
# with the same identifier.
_DUPLICATE_CODE: Final = "duplicate_meter_event"
_DUPLICATE_TEXT: Final = "An event already exists with identifier"
_MAX_PAGES: Final = 100  # of one list

_ResponseBody = TypeVar("_ResponseBody")


class _ErrorDetails(msgspec.Struct):
    code: str | None = None
    message: str = ""


class _ErrorBody(msgspec.Struct):
    error: _ErrorDetails = msgspec.field(default_factory=_ErrorDetails)


class _Customer(msgspec.Struct):
    id: str


class _Meter(msgspec.Struct):
    id: str
    event_name: str


class _Meters(msgspec.Struct):
    data: list[_Meter]
    has_more: bool = False


class _Summary(msgspec.Struct):
    """A meter's total for a part of a period."""

    id: str
    aggregated_value: float


class _Summaries(msgspec.Struct):
    data: list[_Summary]
    has_more: bool = False


class HttpStripe:
    """The port `Stripe` over HTTP. `secret` is the secret API key of the account at Stripe."""

    def __init__(self, url: str, secret: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._url = urlsplit(url)
        self._timeout_s = timeout_s
        # HTTP Basic: the secret is the user name, and the password is empty.
        token = base64.b64encode(f"{secret}:".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "Stripe-Version": _API_VERSION}

    def create_customer(self, *, idempotency_key: str, name: str, tenant_id: str) -> str:
        form = {"name": name, "metadata[tenant_id]": tenant_id}
        body = self._send_request(
            "POST", "/v1/customers", form, {"Idempotency-Key": idempotency_key}
        )
        return _decode_response(body, _Customer).id

    def send_event(self, event: MeterEvent) -> None:
        form = {
            "event_name": event.event_name,
            "identifier": event.identifier,
            "timestamp": str(int(event.occurred_at.timestamp())),
            "payload[stripe_customer_id]": event.customer_id,
            "payload[value]": str(event.quantity),
        }
        try:
            self._send_request("POST", "/v1/billing/meter_events", form)
        except _DuplicateEvent:
            return  # each ledger entry has its own identifier: an earlier attempt has arrived

    def read_totals(
        self, *, customer_id: str, since: datetime, until: datetime
    ) -> Mapping[str, int]:
        period = {
            "customer": customer_id,
            "start_time": str(int(since.timestamp())),
            "end_time": str(int(until.timestamp())),
        }
        return {meter.event_name: self._read_total(meter, period) for meter in self._list_meters()}

    def _list_meters(self) -> list[_Meter]:
        meters: list[_Meter] = []
        query: dict[str, str] = {"limit": "100"}
        for _ in range(_MAX_PAGES):
            page = _decode_response(self._get("/v1/billing/meters", query), _Meters)
            meters += page.data
            if not page.has_more or not page.data:
                return meters
            query["starting_after"] = page.data[-1].id
        raise StripeRejected("Stripe's list of meters does not end.")

    def _read_total(self, meter: _Meter, period: Mapping[str, str]) -> int:
        query = {**period, "limit": "100"}
        total, path = 0.0, f"/v1/billing/meters/{quote(meter.id, safe='')}/event_summaries"
        for _ in range(_MAX_PAGES):
            page = _decode_response(self._get(path, query), _Summaries)
            total += sum(summary.aggregated_value for summary in page.data)
            if not page.has_more or not page.data:
                return round(total)
            query["starting_after"] = page.data[-1].id
        raise StripeRejected("Stripe's list of summaries does not end.")

    def _get(self, path: str, query: Mapping[str, str]) -> bytes:
        return self._send_request("GET", f"{path}?{urlencode(query)}", None)

    def _send_request(
        self,
        method: str,
        path: str,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request and return the response's body. Raises StripeFailed."""
        connection = self._connect()
        try:
            body = None if form is None else urlencode(form)
            all_headers = {**self._headers, **(headers or {})}
            if body is not None:
                all_headers["Content-Type"] = "application/x-www-form-urlencoded"
            connection.request(method, self._url.path.rstrip("/") + path, body, all_headers)
            response = connection.getresponse()
            data = response.read(_MAX_RESPONSE_BYTES)
        except (OSError, http.client.HTTPException) as error:
            # Stripe may have received the request, so the outcome is unknown.
            raise StripeOutcomeUnknown(
                f"Stripe did not respond ({type(error).__name__})."
            ) from error
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return data
        raise _to_error(response.status, data)

    def _connect(self) -> http.client.HTTPConnection:
        is_tls = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout_s)
        try:
            connection.connect()
        except OSError as error:
            raise StripeUnreachable(f"Stripe is not reachable ({type(error).__name__}).") from error
        return connection


class _DuplicateEvent(StripeFailed):
    """Stripe already has an event with this identifier."""


def _to_error(status: int, data: bytes) -> StripeFailed:
    """Return the error, without Stripe's message, which may repeat data of the request."""
    try:
        error = msgspec.json.decode(data, type=_ErrorBody).error
    except msgspec.DecodeError:
        error = _ErrorDetails()
    if error.code == _DUPLICATE_CODE or error.message.startswith(_DUPLICATE_TEXT):
        return _DuplicateEvent("Stripe already has this event.")
    code = f" ({error.code})" if error.code else ""
    message = f"Stripe responded with status {status}{code}."
    if status in (409, 429):
        # Stripe did not process the request, as if it had been unreachable.
        return StripeUnreachable(message)
    return StripeOutcomeUnknown(message) if status >= 500 else StripeRejected(message)


def _decode_response(data: bytes, body_type: type[_ResponseBody]) -> _ResponseBody:
    try:
        return msgspec.json.decode(data, type=body_type)
    except msgspec.DecodeError as error:
        raise StripeOutcomeUnknown("Stripe sent an unexpected response.") from error
