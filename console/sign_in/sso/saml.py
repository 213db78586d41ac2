"""Sign-in through a tenant's own identity provider, over SAML 2.0.

1. Our request is a redirect to the provider. The session stores its facts.
2. The provider's page posts the response. As this request comes from another site, the browser
   sends no session cookie. We verify the response, store its assertion for a minute under a
   ticket, and redirect the browser to step 3.
3. The browser sends the ticket, and its session cookie. Only the session that sent the request can
   sign in, and only once.
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
from django.utils.translation import gettext, gettext_noop
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

_PENDING_REQUEST: Final = "saml-request"  # name of the request's facts in the session
_MAX_WAIT_S: Final = 600  # for the user to sign in at the provider, also with a second factor
_TICKET_S: Final = 60  # how long a ticket is valid
# An assertion is stored as an e-mail address, a name, two IDs and two times. A provider could send
# much longer ones (MAX_RESPONSE_CHARS), and all tenants share Redis.
_MAX_STORED_BYTES: Final = 4096
# Longer than _MAX_WAIT_S and _TICKET_S together, so that an assertion is accepted only once.
_REPLAY_PROTECTION_S: Final = 3600
_CERTIFICATE_TEXT: Final = gettext_noop(
    "Your identity provider signed with a certificate that Caret does not know. An owner of your "
    "tenant must update the provider's metadata in the sign-in settings. If no owner can sign in, "
    "contact the operator of this installation."
)
_EXPIRED_TEXT: Final = gettext_noop(
    "The sign-in expired before it reached us. Try again. If it fails again, the clock of your "
    "identity provider is slow: tell your administrator."
)
_TOO_LATE_TEXT: Final = gettext_noop(
    "You took longer than ten minutes to sign in at your identity provider. Try again."
)
# Messages for reasons of InvalidSamlResponse. For other reasons, the message is FAILED.
_MESSAGES: Final = {
    UNKNOWN_CERTIFICATE: _CERTIFICATE_TEXT,
    "assertion_too_early": CLOCKS_DIFFER,
    "assertion_expired": _EXPIRED_TEXT,
    "confirmation_expired": _EXPIRED_TEXT,
}
# Concurrent verifications, for one tenant and for all. A verification takes milliseconds of CPU
# time, and anybody can send a response.
_VERIFICATIONS: Final = Bulkhead(max_per_holder=4, max_total=16)
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
    """Return the provider's sign-in URL, and store the facts of our request in the session.

    After the sign-in, the browser opens the path `target`. `force_reauthentication`: the provider
    must authenticate the user again, even if they are signed in there.
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
        "sent_at": int(time.time()),  # Unix time in seconds
        "force_reauthentication": force_reauthentication,
    }
    return url


@csrf_exempt  # the provider's page has no CSRF token; our request's ID protects the session
@require_POST
def consume_response(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """Verify the response that an identity provider's page posts, and redirect with a ticket."""
    provider = find_provider(TenantId(str(tenant_id)))
    if not isinstance(provider, SamlProvider):
        raise Http404
    try:
        with _VERIFICATIONS.acquire(provider.tenant_id):
            encoded = request.POST.get("SAMLResponse", "")
            assertion = read_response(encoded, provider, _service_provider(provider.tenant_id))
        ticket = _store_assertion(provider.tenant_id, assertion)
    except InvalidSamlResponse as error:
        message = gettext(_MESSAGES.get(error.reason, FAILED))
        return refuse_login(
            request, provider.tenant_id, error.reason, message=message, detail=error.detail
        )
    except BulkheadFull:
        return render_login_error(request, gettext(BUSY), 503)
    except redis.RedisError:
        return render_login_error(request, gettext(REDIS_UNAVAILABLE), 503)
    done_url = reverse("saml_done", args=[tenant_id])
    response = redirect(f"{done_url}?ticket={ticket}")
    response.status_code = 303  # after a POST, only 303 guarantees that the browser sends a GET
    return response


@require_GET
def finish_login(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """Sign in the user with the assertion of a ticket, if this session sent its request."""
    tenant = TenantId(str(tenant_id))
    if not isinstance(find_provider(tenant), SamlProvider):
        raise Http404
    pending = request.session.get(_PENDING_REQUEST, {})
    try:
        assertion = _consume_assertion(tenant, request.GET.get("ticket", ""))
    except redis.RedisError:
        return render_login_error(request, gettext(REDIS_UNAVAILABLE), 503)
    expected = (pending.get("id"), pending.get("tenant_id"))
    if assertion is None or (assertion.in_response_to, tenant) != expected:
        return refuse_login(request, tenant, "unsolicited")
    del request.session[_PENDING_REQUEST]
    if not pending.keys() >= {"sent_at", "force_reauthentication", "target"}:
        # An older release stored this request.
        return _send_request_again(request, tenant, pending.get("target", "/"))
    sent_at_s = pending["sent_at"]
    if time.time() - sent_at_s > _MAX_WAIT_S:
        return refuse_login(request, tenant, "too_late", message=gettext(_TOO_LATE_TEXT))
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
    """Send our request to the provider again.

    A user who is signed in here wanted to reauthenticate, so the new request requires that.
    """
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
    """Return the metadata with which a tenant sets up its provider.

    The response does not reveal whether the tenant exists.
    """
    service_provider = _service_provider(TenantId(str(tenant_id)))
    text = _METADATA.format(
        entity_id=quoteattr(service_provider.entity_id), acs_url=quoteattr(service_provider.acs_url)
    )
    return HttpResponse(text, content_type="application/samlmetadata+xml")


def _service_provider(tenant_id: TenantId) -> ServiceProvider:
    """Return our identity towards the tenant's provider. Each tenant has its own."""
    base = settings.CONSOLE_URL.rstrip("/")
    return ServiceProvider(
        entity_id=base + reverse("saml_metadata", args=[tenant_id]),
        acs_url=base + reverse("saml_consume", args=[tenant_id]),
    )


def _store_assertion(tenant_id: TenantId, assertion: SamlAssertion) -> str:
    """Store the assertion and return its ticket.

    Raises InvalidSamlResponse if the assertion is too long or was stored before. Raises
    redis.RedisError.
    """
    encoded = msgspec.json.encode(assertion)
    if len(encoded) > _MAX_STORED_BYTES:
        raise InvalidSamlResponse("too_long")
    digest = hashlib.sha256(f"{tenant_id}|{assertion.assertion_id}".encode()).hexdigest()
    if not connect_to_redis().set(f"caret:saml:seen:{digest}", 1, nx=True, ex=_REPLAY_PROTECTION_S):
        raise InvalidSamlResponse("replayed")
    ticket = secrets.token_urlsafe(32)
    connect_to_redis().set(_ticket_key(tenant_id, ticket), encoded, ex=_TICKET_S)
    return ticket


def _consume_assertion(tenant_id: TenantId, ticket: str) -> SamlAssertion | None:
    """Return the assertion of a ticket and delete it; None if the ticket is invalid.

    Raises redis.RedisError.
    """
    encoded = connect_to_redis().getdel(_ticket_key(tenant_id, ticket))
    return None if encoded is None else msgspec.json.decode(encoded, type=SamlAssertion)


def _ticket_key(tenant_id: TenantId, ticket: str) -> str:
    """Return the Redis key of an assertion. Redis contains no ticket, only its hash."""
    return f"caret:saml:ticket:{tenant_id}:{hashlib.sha256(ticket.encode()).hexdigest()}"
