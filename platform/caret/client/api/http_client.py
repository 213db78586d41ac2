"""An HTTP client for the REST API, with retries of repeatable requests.

All requests are repeatable, except a `POST` without an idempotency key. Repeatable requests are
retried if the server does not respond or is busy. Redirects are not followed, so the API key is
sent only to the configured server.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

MAX_TRIES: Final = 4
# Pauses before a retry. They double each time. The response's Retry-After may lengthen a pause, up
# to the maximum.
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 60.0
_CHUNK_BYTES: Final = 256 * 1024
_TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)
_RETRY_STATUSES: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ApiRequest:
    method: str
    path: str  # without placeholders
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None  # sent as JSON; None: no body
    is_repeatable: bool = True  # may be retried


class ServerUnreachable(Exception):
    """The server did not respond, or not in time."""


class ApiError(Exception):
    """The server responded with an error, or an export failed."""

    def __init__(self, status: int, code: str, detail: str, field: str | None) -> None:
        """`status`: HTTP status; 0: there is no error response.

        `field`: the invalid field of the request; None: `detail` alone describes the error.
        """
        super().__init__(detail if field is None else f"{field}: {detail}")
        self.status = status
        self.code = code


class ApiClient:
    """Sends requests to one server with one API key. Must be closed."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`key`: API key; None: requests are sent without a key."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(
            base_url=url, headers=headers, timeout=_TIMEOUT, transport=transport
        )
        self._sleep = sleep

    def close(self) -> None:
        self._client.close()

    def request(self, api_request: ApiRequest) -> httpx.Response:
        """Send a request, with retries if it is repeatable.

        Raises ServerUnreachable, ApiError.
        """
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, MAX_TRIES + 1):
            can_retry = api_request.is_repeatable and attempt < MAX_TRIES
            try:
                response = self._send(api_request)
            except httpx.HTTPError as error:
                if not can_retry:
                    raise ServerUnreachable(
                        f"{self._client.base_url} does not respond: {error}"
                    ) from error
            else:
                if not can_retry or response.status_code not in _RETRY_STATUSES:
                    return _require_success(response)
                pause_s = max(pause_s, _read_retry_after_s(response))
            self._sleep(min(pause_s, _MAX_PAUSE_S))
            pause_s *= 2
        raise AssertionError("the last try returns or raises")

    def download(self, path: str) -> Iterator[bytes]:
        """Download a file in chunks, without retries: a retry would repeat chunks.

        Raises ServerUnreachable, ApiError.
        """
        try:
            with self._client.stream("GET", path) as response:
                if not response.is_success:
                    response.read()
                yield from _require_success(response).iter_bytes(_CHUNK_BYTES)
        except httpx.HTTPError as error:
            raise ServerUnreachable(f"{self._client.base_url} does not respond: {error}") from error

    def sleep(self, seconds: float) -> None:
        """Call the sleep function of this client, which tests replace."""
        self._sleep(seconds)

    def _send(self, api_request: ApiRequest) -> httpx.Response:
        return self._client.request(
            api_request.method,
            api_request.path,
            params=dict(api_request.query),
            headers=dict(api_request.headers),
            json=api_request.body,
        )


def _read_retry_after_s(response: httpx.Response) -> float:
    """Return the seconds of the Retry-After header; 0 if it is missing or a date."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


def _require_success(response: httpx.Response) -> httpx.Response:
    """Return the response. Raises ApiError if its status is not a success."""
    if response.is_success:
        return response
    try:
        problem = response.json()
        raise ApiError(
            response.status_code, problem["code"], problem["detail"], problem.get("field")
        )
    except (ValueError, KeyError, TypeError) as error:
        reason = f"The server answered {response.status_code} {response.reason_phrase}."
        raise ApiError(response.status_code, "unexpected", reason, None) from error
