"""Sends webhooks by the Standard Webhooks specification to URLs that a tenant configures.

`caret.foundation.egress.http_client` refuses forbidden targets, and limits the duration.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.egress.http_client import (
    OutboundRequest,
    RequestFailed,
    ResponseLimits,
    send_request,
)
from tenants.base.errors import InvalidValue

# Only the status of the response matters. But a body of more than `max_bytes` is an error.
_LIMITS: Final = ResponseLimits(total_s=20.0, max_bytes=64 * 1024)
_MAX_URL_CHARS: Final = 500


class WebhookDeliveryError(Exception):
    """The delivery failed. The message gives the reason, and contains no text of the receiver."""


@dataclass(frozen=True, slots=True)
class Webhook:
    id: str  # the same for each attempt
    tenant_and_budget: tuple[str, str]  # their IDs, from which the signing key is derived
    payload: dict[str, Any]  # JSON values; the time of sending is added


def derive_webhook_secret(tenant_id: str, budget_id: str) -> str:
    """Return the secret of a budget's webhook, in the specification's format.

    The receiver verifies signatures with it.
    """
    return f"whsec_{base64.b64encode(_derive_signing_key(tenant_id, budget_id)).decode()}"


def check_webhook_address(url: str) -> None:
    """Check the URL of a webhook. Raises InvalidValue.

    The IP address of its host is checked at each delivery.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a valid port
    except ValueError as error:
        raise InvalidValue("webhook_url", "This is not a valid address.") from error
    schemes = ("https", "http") if settings.PRIVATE_TARGETS else ("https",)
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidValue(
            "webhook_url",
            "Enter an address of at most {most} ASCII characters, without spaces.",
            most=_MAX_URL_CHARS,
        )
    if parts.scheme not in schemes or not parts.hostname:
        raise InvalidValue("webhook_url", "Enter a URL that starts with https://.")
    if parts.username or parts.password or len(url) > _MAX_URL_CHARS:
        raise InvalidValue(
            "webhook_url",
            "Enter a URL without a password, of at most {most} characters.",
            most=_MAX_URL_CHARS,
        )


def send_webhook(url: str, webhook: Webhook, *, now: datetime) -> None:
    """Sign and send a webhook. Raises WebhookDeliveryError."""
    body = json.dumps(webhook.payload | {"timestamp": now.isoformat()}).encode()
    unix_time = str(int(now.timestamp()))
    signature = hmac.digest(
        _derive_signing_key(*webhook.tenant_and_budget),
        f"{webhook.id}.{unix_time}.".encode() + body,
        hashlib.sha256,
    )
    headers = {
        "content-type": "application/json",
        "webhook-id": webhook.id,
        "webhook-timestamp": unix_time,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
    try:
        response = send_request(
            OutboundRequest("POST", url, headers, body), settings.PRIVATE_TARGETS, _LIMITS
        )
    except RequestFailed as error:
        raise WebhookDeliveryError(str(error)) from error
    if not 200 <= response.status < 300:
        raise WebhookDeliveryError(f"The receiver responded with status {response.status}.")


def _derive_signing_key(tenant_id: str, budget_id: str) -> bytes:
    return derive_key(settings.ROOT_SECRET, f"budget-webhook/{tenant_id}/{budget_id}")
