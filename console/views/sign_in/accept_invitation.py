"""The page on which an invited user accepts an invitation, signed in or with a new account.

The link in the e-mail contains the token. `open_link` moves it into the session and redirects to
the page, so that the URL of the page does not contain it.
"""

from http import HTTPStatus
from typing import Final
from uuid import uuid4

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods
from redis import RedisError

from caret.foundation.ids import TenantId, UserId
from console.limits.password_hashing import BUSY, TooManyHashes, check_password, hashing_slot
from console.limits.throttling import AttemptThrottled, count_request_of_network
from console.sign_in.current_member import client_address, set_session_tenant
from console.sign_in.devices import remember_device
from console.sign_in.sessions.session import provider_tenant_of
from console.texts.error_messages import REDIS_UNAVAILABLE, translate_error
from tenants.base.errors import DomainError, Forbidden
from tenants.identity.invitations.operations import (
    InvitationBearer,
    OpenInvitation,
    accept_invitation,
    find_open_invitation,
)
from tenants.identity.members.operations import create_user
from tenants.identity.sso.queries import find_provider_for_email
from tenants.security.authorization.directory import find_user

_SESSION_TOKEN: Final = "invitation"  # noqa: S105  # a key of the session, not a token
_RETRY_AFTER_S: Final = 5
_MAX_NAME_CHARS: Final = 120  # of a user's name, as in the form


@require_GET
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Move the token into the session. Invalid tokens are not stored: anybody could send many."""
    try:
        throttle = count_request_of_network(address=client_address(request), purpose="invitation")
        if throttle is not None:
            return _show_throttled(request, throttle)
        find_open_invitation(text=token, now=timezone.now())
    except RedisError:
        return _render_page(request, {"refusal": gettext(REDIS_UNAVAILABLE)}, 503)
    except DomainError as error:
        return _render_page(request, {"refusal": translate_error(error)}, 404)
    request.session[_SESSION_TOKEN] = token
    return redirect("console:invitation")


@require_http_methods(["GET", "POST"])
def show_invitation(request: HttpRequest) -> HttpResponse:
    """Show the invitation whose token is in the session. A POST accepts it."""
    token = request.session.get(_SESSION_TOKEN, "")
    try:
        open_invitation = find_open_invitation(text=token, now=timezone.now())
    except DomainError as error:
        return _render_page(request, {"refusal": translate_error(error)}, 404)
    context = {
        "email": open_invitation.email,
        "tenant_name": open_invitation.tenant_name,
        "page_part": _choose_page_part(request, open_invitation),
    }
    if request.method == "GET":
        return _render_page(request, context)
    try:
        return _join_tenant(request, token, open_invitation)
    except DomainError as error:
        return _render_page(request, context | {"message": translate_error(error)}, 400)
    except TooManyHashes:
        return _render_page(request, context | {"message": gettext(BUSY)}, 503)


def _choose_page_part(request: HttpRequest, open_invitation: OpenInvitation) -> str:
    """Return the part of the page to show; the template lists all parts."""
    if request.user.is_authenticated:
        if request.user.get_username() != open_invitation.email:
            return "other-user"
        return "accept" if _may_accept(request, open_invitation) else "other-provider"
    # Users of an identity provider get their account at their first sign-in. They never set a
    # password.
    email = open_invitation.email
    is_new = find_user(email=email) is None and find_provider_for_email(email) is None
    return "register" if is_new else "sign-in"


def _may_accept(request: HttpRequest, open_invitation: OpenInvitation) -> bool:
    """Return False if the session belongs to the identity provider of another tenant."""
    return provider_tenant_of(request) in (None, open_invitation.tenant_id)


def _join_tenant(request: HttpRequest, token: str, open_invitation: OpenInvitation) -> HttpResponse:
    """Add the invited user to the tenant. Raises DomainError, TooManyHashes."""
    if not _may_accept(request, open_invitation):
        raise Forbidden("Your identity provider can sign you in only to its own tenant.")
    if request.user.is_authenticated:
        user_id = UserId(str(request.user.pk))
        tenant_id = accept_invitation(
            bearer=_to_bearer(request, user_id), text=token, now=timezone.now()
        )
    else:
        tenant_id = _register_user(request, token, open_invitation.email)
    del request.session[_SESSION_TOKEN]
    set_session_tenant(request, tenant_id)
    messages.success(request, gettext("Welcome! You are now a member."))
    response = redirect("console:overview")
    remember_device(request, response, open_invitation.email)
    return response


def _register_user(request: HttpRequest, token: str, email: str) -> TenantId:
    """Create account and membership in one transaction, and sign the user in.

    Raises DomainError, TooManyHashes.
    """
    if find_provider_for_email(email) is not None:
        raise Forbidden("Sign in through your identity provider first.")
    password = request.POST.get("password", "")
    # Wait for the slot first, so that no transaction is open while waiting.
    with hashing_slot(), transaction.atomic():
        user_id = create_user(
            email=email,
            name=request.POST.get("name", "").strip()[:_MAX_NAME_CHARS],
            password=password,
            now=timezone.now(),
        )
        tenant_id = accept_invitation(
            bearer=_to_bearer(request, user_id), text=token, now=timezone.now()
        )
    user = check_password(request, email=email, password=password)
    assert user is not None  # created a moment ago with this password
    # The user has just typed the password, so no page asks for it again for a while.
    record_authentication(request, user, "password")
    perform_login(request, user, email_verification="none")
    return tenant_id


def _show_throttled(request: HttpRequest, throttle: AttemptThrottled) -> HttpResponse:
    response = _render_page(request, {"refusal": throttle.message}, 429)
    response["Retry-After"] = str(throttle.wait_s)
    return response


def _to_bearer(request: HttpRequest, user_id: UserId) -> InvitationBearer:
    return InvitationBearer(
        user_id=user_id, address=client_address(request), request_id=str(uuid4())
    )


def _render_page(request: HttpRequest, context: dict[str, str], status: int = 200) -> HttpResponse:
    response = render(request, "console/sign_in/accept_invitation.html", context, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(_RETRY_AFTER_S)
    return response
