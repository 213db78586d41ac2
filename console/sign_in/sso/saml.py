"""Sign-in through a tenant's own identity provider, over SAML 2.0.

The request is a redirect, and the session remembers it. The provider's page posts the response from
another site, so it arrives without the session cookie. The response is verified, and its assertion
is stored briefly under a ticket. The browser is redirected with the ticket, now with its cookie.
Only the session that sent the request can sign in, once.
"""

import hashlib
import secrets
import time
import uuid
from typing import Final
from xml.sax.saxutils import quoteattr

import msgspec
import redis
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_noop
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from onelogin.saml2.auth import OneLogin_Saml2_Auth

from caret.foundation.concurrency.bulkhead import Bulkhead, BulkheadFull
from caret.foundation.ids import TenantId
from console.limits.password_hashing import BUSY
from console.sign_in.sso.login import (
    CLOCKS_DIFFER,
    FAILED,
    SsoLogin,
    complete_sso_login,
    refuse_login,
    render_login_error,
)
from console.sign_in.sso.saml_response import (
    InvalidSamlResponse,
    SamlAssertion,
    ServiceProvider,
    read_response,
    request_data,
    settings_for,
)
from console.texts.error_messages import REDIS_UNAVAILABLE
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.sso.operations import UNKNOWN_CERTIFICATE
from tenants.identity.sso.queries import SamlProvider, find_provider

_PENDING_REQUEST: Final = "saml-request"  # session key of the pending request
_MAX_WAIT_S: Final = 600  # enough to type a password and find a phone
_TICKET_S: Final = 60
# An address, a name and two IDs. A response can be 60 times as long, and all tenants share Redis.
_MAX_STORED_BYTES: Final = 4096
# Longer than a request stays valid, so that its response is accepted only once.
_REPLAY_PROTECTION_S: Final = 3600
_UNKNOWN_CERTIFICATE: Final = gettext_noop(
    "Your identity provider signed with a certificate that Caret does not know. An owner of your "
    "tenant must update the provider's metadata in the sign-in settings. If no owner can sign in, "
    "contact the operator of this installation."
)
_EXPIRED: Final = gettext_noop(
    "The sign-in expired before it reached us. Try again. If it fails again, the clock of your "
    "identity provider is slow: tell your administrator."
)
_TOO_LATE: Final = gettext_noop(
    "You took longer than ten minutes to sign in at your identity provider. Try again."
)
# Reasons with a better message than FAILED.
_MESSAGES: Final = {
    UNKNOWN_CERTIFICATE: _UNKNOWN_CERTIFICATE,
    "assertion_too_early": CLOCKS_DIFFER,
    "assertion_expired": _EXPIRED,
    "confirmation_expired": _EXPIRED,
}
# Verification costs milliseconds of CPU, and anybody can request it.
_VERIFYING: Final = Bulkhead(max_each=4, max_all=16)
_METADATA: Final = (
    '<?xml version="1.0"?>\n'
    '<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID={entity_id}>'
    '<md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true"'
    ' protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
    "<md:NameIDFormat>urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress</md:NameIDFormat>"
    '<md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"'
    ' Location={acs_url} index="1"/>'
    "</md:SPSSODescriptor></md:EntityDescriptor>\n"
)


def authn_request_url(
    request: HttpRequest,
    provider: SamlProvider,
    target: str,
    *,
    force_reauthentication: bool = False,
) -> str:
    """Return the provider's sign-in URL and store the request in the session.

    `force_reauthentication` forces a new authentication of a user who is signed in at the provider.
    """
    service_provider = _service_provider(provider.tenant_id)
    auth = OneLogin_Saml2_Auth(
        request_data(service_provider), settings_for(provider, service_provider)
    )
    url = str(auth.login(return_to="", force_authn=force_reauthentication))
    request.session[_PENDING_REQUEST] = {
        "id": auth.get_last_request_id(),
        "tenant_id": provider.tenant_id,
        "target": target,
        "sent_at": int(time.time()),
        "force_reauthentication": force_reauthentication,
    }
    return url


@csrf_exempt  # the provider's page posts it; the request ID replaces the CSRF token
@require_POST
def consume_response(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """Handle the response that an identity provider's page posts."""
    provider = find_provider(TenantId(str(tenant_id)))
    if not isinstance(provider, SamlProvider):
        raise Http404
    try:
        with _VERIFYING.acquire(provider.tenant_id):
            encoded = request.POST.get("SAMLResponse", "")
            assertion = read_response(encoded, provider, _service_provider(provider.tenant_id))
        ticket = _ticket_for(provider.tenant_id, assertion)
    except InvalidSamlResponse as error:
        message = _MESSAGES.get(error.reason, FAILED)
        return refuse_login(
            request, provider.tenant_id, error.reason, message=message, detail=error.detail
        )
    except BulkheadFull:
        return render_login_error(request, BUSY, 503)
    except redis.RedisError:
        return render_login_error(request, REDIS_UNAVAILABLE, 503)
    done_url = reverse("saml_done", args=[tenant_id])
    response = redirect(f"{done_url}?ticket={ticket}")
    response.status_code = 303  # 303 makes browsers send a GET with the session cookie
    return response


@require_GET
def finish_login(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    tenant = TenantId(str(tenant_id))
    if not isinstance(find_provider(tenant), SamlProvider):
        raise Http404
    pending = request.session.get(_PENDING_REQUEST, {})
    try:
        assertion = _take_assertion(tenant, request.GET.get("ticket", ""))
    except redis.RedisError:
        return render_login_error(request, REDIS_UNAVAILABLE, 503)
    is_expected = assertion is not None and (assertion.in_response_to, tenant) == (
        pending.get("id"),
        pending.get("tenant_id"),
    )
    if assertion is None or not is_expected:
        return refuse_login(request, tenant, "unsolicited")
    del request.session[_PENDING_REQUEST]
    if not pending.keys() >= {"sent_at", "force_reauthentication", "target"}:
        # An older release sent this request.
        return _send_request_again(request, tenant, pending.get("target", "/"))
    sent_at_s = pending["sent_at"]
    if time.time() - sent_at_s > _MAX_WAIT_S:
        return refuse_login(request, tenant, "too_late", message=_TOO_LATE)
    sso_login = SsoLogin(
        tenant_id=tenant,
        email=assertion.email,
        name=assertion.name,
        target=pending["target"],
        signed_in_at_s=assertion.signed_in_at_s,
        issued_at_s=assertion.issued_at_s,
        reauthentication_requested_at_s=sent_at_s if pending["force_reauthentication"] else None,
    )
    return complete_sso_login(request, sso_login)


def _send_request_again(request: HttpRequest, tenant_id: TenantId, target: str) -> HttpResponse:
    """Send the sign-in request again. A user who is signed in here must reauthenticate."""
    provider = find_provider(tenant_id)
    if not isinstance(provider, SamlProvider):
        raise Http404
    return redirect(
        authn_request_url(
            request, provider, target, force_reauthentication=request.user.is_authenticated
        )
    )


@require_GET
def metadata(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """Return our service provider metadata. It is the same for tenants that do not exist."""
    service_provider = _service_provider(TenantId(str(tenant_id)))
    text = _METADATA.format(
        entity_id=quoteattr(service_provider.entity_id), acs_url=quoteattr(service_provider.acs_url)
    )
    return HttpResponse(text, content_type="application/samlmetadata+xml")


def _service_provider(tenant_id: TenantId) -> ServiceProvider:
    base = settings.CONSOLE_URL.rstrip("/")
    return ServiceProvider(
        entity_id=base + reverse("saml_metadata", args=[tenant_id]),
        acs_url=base + reverse("saml_consume", args=[tenant_id]),
    )


def _ticket_for(tenant_id: TenantId, assertion: SamlAssertion) -> str:
    """Store the assertion and return its ticket.

    Raises InvalidSamlResponse for a replayed or too long assertion, redis.RedisError.
    """
    encoded = msgspec.json.encode(assertion)
    if len(encoded) > _MAX_STORED_BYTES:
        raise InvalidSamlResponse("too_long")
    digest = hashlib.sha256(f"{tenant_id}|{assertion.assertion_id}".encode()).hexdigest()
    if not connect_to_redis().set(f"caret:saml:seen:{digest}", 1, nx=True, ex=_REPLAY_PROTECTION_S):
        raise InvalidSamlResponse("replayed")
    ticket = secrets.token_urlsafe(32)
    connect_to_redis().set(_cache_key(tenant_id, ticket), encoded, ex=_TICKET_S)
    return ticket


def _take_assertion(tenant_id: TenantId, ticket: str) -> SamlAssertion | None:
    """Return the assertion of a ticket and delete it. Raises redis.RedisError."""
    encoded = connect_to_redis().getdel(_cache_key(tenant_id, ticket))
    return None if encoded is None else msgspec.json.decode(encoded, type=SamlAssertion)


def _cache_key(tenant_id: TenantId, ticket: str) -> str:
    return f"caret:saml:ticket:{tenant_id}:{hashlib.sha256(ticket.encode()).hexdigest()}"
