"""The endpoints of the device flow (RFC 8628) that editors call.

oauthlib checks the HTTP requests and writes the errors. DeviceFlowValidator tells oauthlib the
state of a device request, which tenants.identity.own_keys.device_requests stores. The access token
is an API key. Clients have no secret: any program may start the flow, and the user decides.
"""

import json
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qsl
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from oauthlib.oauth2 import OAuth2Error
from oauthlib.oauth2.rfc6749.endpoints.token import TokenEndpoint
from oauthlib.oauth2.rfc6749.errors import InvalidRequestError
from oauthlib.oauth2.rfc8628.endpoints import DeviceAuthorizationEndpoint
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant
from oauthlib.oauth2.rfc8628.request_validator import RequestValidator

from console.limits.throttling import count_request_of_network
from console.sign_in.current_member import client_address
from tenants.base.errors import InvalidValue
from tenants.identity.api_keys.scopes import serialize_scopes
from tenants.identity.own_keys.device_requests import (
    INTERVAL_S,
    LIFETIME,
    PollResult,
    create_device_request,
    generate_user_code,
    poll_device_request,
)

CLIENTS: Final = frozenset({"caret-ls"})  # OAuth client IDs
_GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_BODY_BYTES: Final = 8 * 1024
# The status that oauthlib expects for the result of a poll. A result without a status, such as an
# unknown device code, makes oauthlib respond with invalid_grant.
_STATUSES: Final = {
    PollResult.PENDING: DeviceCodeGrant.DEVICE_CODE_PENDING,
    PollResult.SLOW_DOWN: DeviceCodeGrant.DEVICE_CODE_SLOW_DOWN,
    PollResult.CONFIRMED: DeviceCodeGrant.DEVICE_CODE_AUTHORIZED,
    PollResult.DENIED: DeviceCodeGrant.DEVICE_CODE_DENIED,
    PollResult.EXPIRED: DeviceCodeGrant.DEVICE_CODE_EXPIRED,
}


class DeviceFlowValidator(RequestValidator):  # type: ignore[misc]  # oauthlib has no types
    """Tells oauthlib which clients exist and the state of a device code."""

    def __init__(self, address: str) -> None:
        self._address = address  # the client's IP address

    def validate_client_id(self, client_id: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        return client_id in CLIENTS

    def client_authentication_required(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        return False

    def authenticate_client_id(
        self, client_id: str, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        request.client = SimpleNamespace(client_id=client_id)  # oauthlib reads it later
        return client_id in CLIENTS

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        return grant_type == _GRANT_TYPE

    def get_default_scopes(
        self, client_id: str, request: Any, *args: Any, **kwargs: Any
    ) -> list[str]:
        return []

    def validate_scopes(
        self, client_id: str, scopes: Any, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Accept all scopes. The policy decides which scopes the key gets."""
        return True

    def validate_device_code(
        self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any
    ) -> str | None:
        """Return the status of a device code; None: the code is unknown or was used before.

        If the user has confirmed the request, create the API key.
        """
        poll = poll_device_request(
            device_code=code,
            address=self._address,
            request_id=str(uuid4()),
            now=timezone.now(),
        )
        if poll.created is not None:
            request.created_key = poll.created
            request.user = poll.created.key.owner_email
            request.scopes = serialize_scopes(poll.created.key.scopes)
        return _STATUSES.get(poll.result)

    def save_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the key is already stored, as a digest."""


class _KeyTokenHandler:
    """Builds oauthlib's response with a token from the API key that DeviceFlowValidator created."""

    def create_token(self, request: Any, refresh_token: bool = False) -> dict[str, Any]:
        created_key = request.created_key
        token = {
            "access_token": created_key.text,
            "token_type": "Bearer",
            "scope": " ".join(request.scopes),
            "user": request.user,
        }
        if created_key.key.expires_at is not None:
            remaining = created_key.key.expires_at - timezone.now()
            token["expires_in"] = int(remaining.total_seconds())
        return token


_View = Callable[[HttpRequest, str], HttpResponse]


def _oauth_endpoint(view: _View) -> Callable[[HttpRequest], HttpResponse]:
    """Pass the form-encoded body to the view, and return OAuth2Error as JSON (RFC 6749).

    Also rejects a body that is too large, of another content type, or not UTF-8.
    """

    @csrf_exempt  # editors send no session cookie
    @require_POST
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        try:
            if len(request.body) > _MAX_BODY_BYTES:
                return _error_response("invalid_request", "The body is too large.", 413)
            if request.content_type != _FORM_TYPE:
                raise InvalidRequestError(f"The body must be {_FORM_TYPE}.")
            return view(request, request.body.decode("utf-8"))
        except RequestDataTooBig:
            return _error_response("invalid_request", "The body is too large.", 413)
        except UnicodeDecodeError:
            return _error_response("invalid_request", "The body is not UTF-8.")
        except OAuth2Error as error:
            return _error_response(error.error, error.description, error.status_code)

    return guarded


@_oauth_endpoint
def device_authorization(request: HttpRequest, body: str) -> HttpResponse:
    """Store a new device request and return its codes. Raises OAuth2Error, redis.RedisError."""
    address = client_address(request)
    throttle = count_request_of_network(address=address, purpose="device-flow")
    if throttle is not None:
        # The error code slow_down of RFC 8628 is only for polls.
        response = _error_response("temporarily_unavailable", "Too many requests.", 429)
        response["Retry-After"] = str(throttle.wait_s)
        return response
    page_url = settings.CONSOLE_URL.rstrip("/") + reverse("console:device")
    endpoint = DeviceAuthorizationEndpoint(
        DeviceFlowValidator(address),
        page_url,
        expires_in=int(LIFETIME.total_seconds()),
        interval=INTERVAL_S,
        verification_uri_complete=page_url + "?code={user_code}",  # oauthlib inserts the code
        user_code_generator=generate_user_code,
    )
    _headers, codes, status = endpoint.create_device_authorization_response(
        request.path, "POST", body, dict(request.headers)
    )
    # `editor` and `machine` are not in RFC 8628. They tell the user which editor asks.
    fields = dict(parse_qsl(body, keep_blank_values=True))
    try:
        create_device_request(
            device_code=codes["device_code"],
            user_code=codes["user_code"],
            editor=fields.get("editor", "Editor"),
            machine=fields.get("machine", "unknown machine"),
            address=address,
            now=timezone.now(),
        )
    except InvalidValue as error:
        raise InvalidRequestError(f"{error.field}: {error.message}") from error
    return _json_response(codes, status)


@_oauth_endpoint
def token(request: HttpRequest, body: str) -> HttpResponse:
    """Handle an editor's poll. The response is the API key, or an error such as slow_down.

    Raises OAuth2Error, redis.RedisError.
    """
    grant = DeviceCodeGrant(DeviceFlowValidator(client_address(request)))
    endpoint = TokenEndpoint(_GRANT_TYPE, _KeyTokenHandler(), {_GRANT_TYPE: grant})
    headers, response_body, status = endpoint.create_token_response(
        request.path, "POST", body, dict(request.headers)
    )
    return HttpResponse(response_body, status=status, headers=headers)


def _json_response(document: dict[str, Any], status: int) -> HttpResponse:
    return HttpResponse(json.dumps(document), status=status, content_type="application/json")


def _error_response(code: str, description: str, status: int = 400) -> HttpResponse:
    return _json_response({"error": code, "error_description": description}, status)
