"""The last step of every sign-in through an identity provider, by OpenID Connect or SAML.

A signed-in user who must reauthenticate needs a new authentication at the provider. If the provider
answers from its own session, it has not checked the user again.
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import structlog
from allauth.account.utils import perform_login
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from redis import RedisError

from caret.foundation.ids import TenantId
from console.sign_in.account_adapter import PROVIDER_SIGNED_IN_AT, PROVIDER_TENANT
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import Forbidden
from tenants.identity.sso.operations import (
    normalize_address,
    provision_user,
    record_refused_sign_in,
)

logger = structlog.get_logger(__name__)

_CLOCK_SKEW_S: Final = 60
_MAX_DETAIL_CHARS: Final = 200  # in the process log, because a provider chooses the text
# Messages for the reasons why a sign-in is no reauthentication.
_NOT_CONFIRMED: Final = {
    "another_person": _("You signed in to your identity provider as a different user."),
    "earlier_sign_in": _(
        "Your identity provider reused an earlier sign-in instead of asking you to sign "
        "in again. Sign out there, then try again."
    ),
    "provider_clock_slow": _(
        "The clock of your identity provider is slow, so we cannot tell that you signed in again. "
        "Tell your administrator."
    ),
}
FAILED: Final = gettext_noop(
    "Your identity provider rejected the sign-in. Try again, or contact your administrator."
)
CLOCKS_DIFFER: Final = gettext_noop(
    "The clock of your identity provider differs from ours. Tell your administrator."
)


@dataclass(frozen=True, slots=True)
class SsoLogin:
    """A user, authenticated by a tenant's identity provider."""

    tenant_id: TenantId
    email: str = field(repr=False)
    name: str = field(repr=False)
    target: str | None  # path of the page that the user requested; None: no particular page
    # Unix time of the authentication, by the provider's clock; None: the provider does not say.
    signed_in_at_s: int | None
    # Unix time of the response, by the provider's clock; None: unknown.
    issued_at_s: int | None
    # Unix time of our request for a new authentication; None: we did not request one.
    reauthentication_requested_at_s: int | None


def complete_sso_login(request: HttpRequest, sso_login: SsoLogin) -> HttpResponse:
    """Sign the user in, and create their account if it does not exist.

    Show an error if the tenant may not sign in this address, or if the user had to reauthenticate
    and has not done so.
    """
    requested_at_s = sso_login.reauthentication_requested_at_s
    if requested_at_s is not None:
        # This comes before provision_user, so that no account is created for another person.
        reason = _find_refusal_reason(request, sso_login, requested_at_s)
        if reason is not None:
            return _redirect_to_sign_in_again(request, sso_login, reason)
    try:
        user_id = provision_user(
            tenant_id=sso_login.tenant_id,
            email=sso_login.email,
            name=sso_login.name,
            now=timezone.now(),
        )
    except Forbidden as error:
        return refuse_login(
            request, sso_login.tenant_id, "address_not_allowed", message=translate_error(error)
        )
    response: HttpResponse = perform_login(
        request,
        get_user_model().objects.get(pk=user_id),
        email_verification="none",
        redirect_url=sso_login.target,
        signal_kwargs={
            PROVIDER_TENANT: sso_login.tenant_id,
            PROVIDER_SIGNED_IN_AT: sso_login.signed_in_at_s,
        },
    )
    return response


def _find_refusal_reason(
    request: HttpRequest, sso_login: SsoLogin, requested_at_s: int
) -> str | None:
    """Return a key of _NOT_CONFIRMED; None if the user has reauthenticated."""
    is_same_user = request.user.get_username() == normalize_address(sso_login.email)
    if not request.user.is_authenticated or not is_same_user:
        return "another_person"
    earliest_s = requested_at_s - _CLOCK_SKEW_S
    if (sso_login.signed_in_at_s or 0) >= earliest_s:
        return None
    # A provider whose clock is right cannot issue a response before our request.
    is_clock_slow = sso_login.issued_at_s is not None and sso_login.issued_at_s < earliest_s
    return "provider_clock_slow" if is_clock_slow else "earlier_sign_in"


def _redirect_to_sign_in_again(
    request: HttpRequest, sso_login: SsoLogin, reason: str
) -> HttpResponse:
    """Record the refusal, and redirect to the page that asks the user to sign in again."""
    _record_refusal(request, sso_login.tenant_id, reason)
    messages.error(request, _NOT_CONFIRMED[reason])
    sign_in_again_url = reverse("console:sign-in-again")
    return redirect(f"{sign_in_again_url}?{urlencode({'next': sso_login.target or '/'})}")


def refuse_login(
    request: HttpRequest,
    tenant_id: TenantId,
    reason: str,
    *,
    message: str | None = None,
    detail: str = "",
) -> HttpResponse:
    """Record that the response of a tenant's identity provider is refused, and show `message`.

    `message` is in the language of the page; None: the message FAILED. `reason` is a short fixed
    text for the audit log. `detail` is for the process log only, because it may quote the response.
    """
    _record_refusal(request, tenant_id, reason, detail)
    return render_login_error(request, gettext(FAILED) if message is None else message)


def _record_refusal(
    request: HttpRequest, tenant_id: TenantId, reason: str, detail: str = ""
) -> None:
    logger.warning(
        "sign_in.provider_failed",
        tenant_id=tenant_id,
        reason=reason,
        detail=detail[:_MAX_DETAIL_CHARS],
    )
    try:
        record_refused_sign_in(
            tenant_id=tenant_id, reason=reason, address=client_address(request), now=timezone.now()
        )
    except RedisError:
        logger.warning("sign_in.refusal_not_audited", tenant_id=tenant_id)


def render_login_error(request: HttpRequest, message: str, status: int = 403) -> HttpResponse:
    """Show the sign-in page with `message`, which is in the language of the page."""
    context = {"message": message, "next": "/", "email": ""}
    return render(request, "console/sign_in/sign_in.html", context, status=status)
