"""A requests.Session for requests to identity providers.

Its requests go through caret.foundation.egress.http_client, which protects internal addresses.
"""

from collections.abc import Mapping
from typing import Any, Final

import requests
from django.conf import settings
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

from caret.foundation.egress.http_client import (
    OutboundRequest,
    OutboundResponse,
    RequestFailed,
    ResponseLimits,
    send_request,
)

# Limits of one request; a sign-in sends up to four. The largest known response has 20 KB: the key
# set of Entra ID.
BOUNDS: Final = ResponseLimits(total_s=5.0, max_bytes=256 * 1024)


def create_guarded_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # no proxy from the environment: it could connect to any address
    session.max_redirects = 0
    session.adapters.clear()
    session.mount("https://", _EgressCheckedAdapter())
    session.mount("http://", _EgressCheckedAdapter())
    return session


class _EgressCheckedAdapter(BaseAdapter):
    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:  # type: ignore[override]  # kwargs: timeouts etc., which BOUNDS replaces
        """Send the request within BOUNDS. Raises requests.ConnectionError."""
        outbound = OutboundRequest(
            method=str(request.method),
            url=str(request.url),
            headers=_decode_headers(request.headers),
            body=_body_bytes(request.body),
        )
        try:
            outbound_response = send_request(outbound, settings.PRIVATE_TARGETS, BOUNDS)
        except RequestFailed as error:
            raise requests.ConnectionError(str(error), request=request) from error
        return _to_requests_response(request, outbound_response)

    def close(self) -> None:
        """Do nothing: no connection stays open."""


def _to_requests_response(
    request: requests.PreparedRequest, outbound_response: OutboundResponse
) -> requests.Response:
    response = requests.Response()
    response.status_code = outbound_response.status
    response.headers = CaseInsensitiveDict(outbound_response.headers)
    response.encoding = get_encoding_from_headers(response.headers)
    response.url = str(request.url)
    response.request = request
    response._content = outbound_response.body  # requests has no public setter for a body
    response._content_consumed = True
    return response


def _body_bytes(body: object) -> bytes | None:
    """Return the body as bytes; None if there is none. allauth sends no files and no streams."""
    assert isinstance(body, str | bytes | None)
    return body.encode() if isinstance(body, str) else body


def _decode_headers(headers: Mapping[str, str | bytes]) -> dict[str, str]:
    return {
        name: text.decode("latin-1") if isinstance(text, bytes) else text
        for name, text in headers.items()
    }
