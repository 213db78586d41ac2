"""Fetches the metadata of an identity provider from where a tenant says that they are."""

from typing import Final

from django.conf import settings

from caret.foundation.egress.http_client import Bounds, NotAnswered, Outgoing, exchange
from tenants.base.errors import Invalid
from tenants.identity.sso.saml_metadata import MAX_METADATA_BYTES

_BOUNDS: Final = Bounds(total_s=5.0, max_bytes=MAX_METADATA_BYTES)
_OK: Final = 200


def fetch_metadata(url: str) -> str:
    """Raises Invalid."""
    asked = Outgoing(method="GET", url=url, headers={"Accept": "application/samlmetadata+xml, */*"})
    try:
        answer = exchange(asked, settings.PRIVATE_TARGETS, _BOUNDS)
    except NotAnswered as error:
        raise Invalid("metadata_url", str(error)) from error
    if answer.status != _OK:
        raise Invalid("metadata_url", "It answered {status}.", status=answer.status)
    return answer.body.decode("utf-8", "replace")
