"""An HTTP server that follows Stripe's rules.

It checks API keys and idempotency keys, and sums meter events. It rejects an event whose identifier
was used within the last 24 hours, whose time is older than 35 days, or whose time is more than five
minutes ahead. It can fail before or after it has handled a request.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.server_thread import serving_in_thread

SECRET = "sk_test_0123456789"
_PAGE_SIZE = 4  # meters on a page: few, so that there are several pages
_IDENTIFIER_LIFETIME = timedelta(hours=24)
_MAX_AGE_S = 35 * 86_400
_MAX_FUTURE_S = 300


@dataclass(frozen=True, slots=True)
class Fault:
    status: int | None  # None: it closes the connection without a response
    is_processed: bool = False  # it handles the request, and then fails
    delay_s: float = 0.0  # it waits before it fails


@dataclass(slots=True)
class MeterEvent:
    identifier: str
    event_name: str
    customer: str
    value: int
    timestamp: int  # Unix seconds, as the client sent it
    at: datetime  # the time at which the server accepted it


@dataclass
class StripeServer:
    now: datetime
    meters: tuple[str, ...]  # event names
    faults: list[Fault] = field(default_factory=list)  # of the next calls
    customers: dict[str, str] = field(default_factory=dict)  # ID by idempotency key
    events: list[MeterEvent] = field(default_factory=list)
    num_calls: int = 0
    url: str = ""
    lock: Any = field(default_factory=Lock)

    def handle_or_fail(
        self, method: str, target: str, headers: dict[str, str], form: dict[str, str]
    ) -> tuple[int | None, Any]:
        """Return the status and the response. If the status is None, no response is to be sent."""
        with self.lock:
            self.num_calls += 1
            fault = self.faults.pop(0) if self.faults else None
            if fault is None:
                return self.handle_request(method, target, headers, form)
            if fault.is_processed:
                self.handle_request(method, target, headers, form)
        time.sleep(fault.delay_s)
        return fault.status, _error("api_error")

    def handle_request(
        self, method: str, target: str, headers: dict[str, str], form: dict[str, str]
    ) -> tuple[int, Any]:
        if headers.get("authorization") != f"Basic {_basic(SECRET)}":
            return 401, _error("api_key_invalid")
        url = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if (method, url.path) == ("POST", "/v1/customers"):
            return self._create_customer(headers, form)
        if (method, url.path) == ("POST", "/v1/billing/meter_events"):
            return self._record_event(form)
        if (method, url.path) == ("GET", "/v1/billing/meters"):
            return self._list_meters(query)
        if method == "GET" and url.path.endswith("/event_summaries"):
            return self._summarize_events(url.path.split("/")[-2], query)
        return 404, _error("resource_missing")

    def _create_customer(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        # Without an idempotency key, each call creates a customer.
        idempotency_key = headers.get("idempotency-key", f"none-{len(self.customers)}")
        customer = self.customers.setdefault(idempotency_key, f"cus_{len(self.customers):04}")
        return 200, {"id": customer, "object": "customer", "name": form["name"]}

    def _record_event(self, form: dict[str, str]) -> tuple[int, Any]:
        identifier, timestamp = form["identifier"], int(form["timestamp"])
        duplicates = [
            event
            for event in self.events
            if event.identifier == identifier and self.now - event.at < _IDENTIFIER_LIFETIME
        ]
        if duplicates:
            text = f"An event already exists with identifier {identifier}."
            return 400, {"error": {"type": "invalid_request_error", "message": text}}
        age_s = self.now.timestamp() - timestamp
        if age_s > _MAX_AGE_S:
            return 400, _error("timestamp_too_far_in_past")
        if age_s < -_MAX_FUTURE_S:
            return 400, _error("timestamp_in_future")
        if form["event_name"] not in self.meters or not form["payload[value]"].isdigit():
            return 400, _error("no_meter")
        customer = form["payload[stripe_customer_id]"]
        if customer not in self.customers.values():
            return 400, _error("resource_missing")
        value = int(form["payload[value]"])
        event = MeterEvent(identifier, form["event_name"], customer, value, timestamp, self.now)
        self.events.append(event)
        return 200, {"object": "billing.meter_event", "identifier": identifier}

    def _list_meters(self, query: dict[str, str]) -> tuple[int, Any]:
        after = query.get("starting_after")
        start = 0 if after is None else int(after.removeprefix("mtr_")) + 1
        page = list(enumerate(self.meters))[start : start + _PAGE_SIZE]
        data = [{"id": f"mtr_{number}", "event_name": name} for number, name in page]
        return 200, {"data": data, "has_more": start + _PAGE_SIZE < len(self.meters)}

    def _summarize_events(self, meter: str, query: dict[str, str]) -> tuple[int, Any]:
        since, until = int(query["start_time"]), int(query["end_time"])
        # Stripe requires whole minutes.
        if since % 60 or until % 60:
            return 400, _error("parameter_invalid")
        total = sum(
            event.value
            for event in self.events
            if event.event_name == self.meters[int(meter.removeprefix("mtr_"))]
            and event.customer == query["customer"]
            and since <= event.timestamp < until
        )
        return 200, {"data": [{"id": "mtrs_1", "aggregated_value": total}], "has_more": False}


def _error(code: str) -> dict[str, Any]:
    return {"error": {"type": "invalid_request_error", "code": code, "message": f"{code}!"}}


def _basic(secret: str) -> str:
    """Return the credentials of HTTP basic authentication: the API key, and no password."""
    return base64.b64encode(f"{secret}:".encode()).decode()


def _handler(server: StripeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            form = {name: values[-1] for name, values in parse_qs(body).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, response = server.handle_or_fail(self.command, self.path, headers, form)
            self._send_response(status, response)

        def _send_response(self, status: int | None, response: Any) -> None:
            if status is None:
                self.close_connection = True
                return
            data = json.dumps(response).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def stripe_server(*, now: datetime, meters: tuple[str, ...]) -> Iterator[StripeServer]:
    server = StripeServer(now=now, meters=meters)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{listening.server_port}"
    with serving_in_thread(listening):
        yield server
