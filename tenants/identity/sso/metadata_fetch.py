"""Fetches an identity provider's SAML metadata from a URL that the tenant has entered."""

from typing import Final

from django.conf import settings

from caret.foundation.egress.http_client import (
    OutboundRequest,
    RequestFailed,
    ResponseLimits,
    send_request,
)
from tenants.base.errors import InvalidValue
from tenants.identity.sso.saml_metadata import MAX_METADATA_BYTES

_BOUNDS: Final = ResponseLimits(total_s=5.0, max_bytes=MAX_METADATA_BYTES)
_OK: Final = 200


def fetch_metadata(url: str) -> str:
    """Return the metadata, an XML text. Raises InvalidValue if it cannot be fetched."""
    outbound = OutboundRequest(
        method="GET", url=url, headers={"Accept": "application/samlmetadata+xml, */*"}
    )
    try:
        response = send_request(outbound, settings.PRIVATE_TARGETS, _BOUNDS)
    except RequestFailed as error:
        raise InvalidValue("metadata_url", str(error)) from error
    if response.status != _OK:
        raise InvalidValue(
            "metadata_url", "The provider responded with status {status}.", status=response.status
        )
    return response.body.decode("utf-8", "replace")
