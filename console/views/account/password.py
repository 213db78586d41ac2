"""The page that changes the user's own password."""

from typing import Final

from allauth.account.internal.flows.password_change import finalize_password_change
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods

from caret.foundation.ids import UserId
from console.layout.htmx import render_page
from console.limits.password_hashing import BUSY, TooManyHashes, check_password, hashing_slot
from console.limits.throttling import Secret, count_attempt, count_password_change, forgive_attempt
from console.sign_in.current_member import CurrentMember, client_address, member_required
from console.sign_in.devices import build_attempt, remember_device
from console.sign_in.password_forms import ChangePasswordForm
from console.sign_in.sessions.session import password_session_required
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, InvalidValue
from tenants.identity.passwords.operations import change_password

_PAGE: Final = "console/account/password.html"
_WRONG_PASSWORD: Final = gettext_noop("This is not your current password.")
_RETRY_AFTER_BUSY_S: Final = 5  # Retry-After header if no hashing slot is free


@require_http_methods(["GET", "POST"])
@password_session_required
@member_required
def password(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show and process the form. Raises redis.RedisError, which RedisErrorMiddleware handles."""
    if request.method == "GET":
        return render_page(request, member, _PAGE, {"form": ChangePasswordForm()})
    form = ChangePasswordForm(request.POST)
    if not form.is_valid():
        return render_page(request, member, _PAGE, {"form": form}, status=400)
    try:
        return _try_change(request, member, form)
    except InvalidValue as error:
        return _show_error(request, member, form, ("password", translate_error(error)))
    except Conflict as error:
        error_pair = ("current_password", translate_error(error))
        return _show_error(request, member, form, error_pair, status=409)
    except TooManyHashes:
        error_pair = ("password", gettext(BUSY))
        return _show_error(
            request, member, form, error_pair, status=503, retry_after_s=_RETRY_AFTER_BUSY_S
        )


def _try_change(
    request: HttpRequest, member: CurrentMember, form: ChangePasswordForm
) -> HttpResponse:
    """Change the password if the current one is right; otherwise show an error.

    Raises InvalidValue, Conflict, TooManyHashes, redis.RedisError.
    """
    attempt = build_attempt(request, Secret.STEP_UP_PASSWORD, member.email)
    if (throttle := count_attempt(attempt)) is not None:
        error = ("current_password", throttle.message)
        return _show_error(request, member, form, error, status=429, retry_after_s=throttle.wait_s)
    current_password = form.cleaned_data["current_password"]
    try:
        user = check_password(request, email=member.email, password=current_password)
    except TooManyHashes:
        forgive_attempt(attempt)
        raise
    if user is None:
        return _show_error(request, member, form, ("current_password", gettext(_WRONG_PASSWORD)))
    forgive_attempt(attempt)
    if (throttle := count_password_change(user_id=str(user.pk))) is not None:
        error = ("password", throttle.message)
        return _show_error(request, member, form, error, status=429, retry_after_s=throttle.wait_s)
    _change_password(request, user.password, form.cleaned_data["password"])
    messages.success(request, gettext("Password changed. Your other sessions have ended."))
    response = redirect("console:password")
    remember_device(request, response, member.email)
    return response


def _change_password(request: HttpRequest, verified_hash: str, new_password: str) -> None:
    """Set the new password and end the user's other sessions. This session gets a new session key.

    `verified_hash` is the hash that the current password matched. Raises InvalidValue,
    TooManyHashes, and Conflict if the hash has changed since then.
    """
    # The slot is inside the transaction: it is free again when the commit sends the e-mail.
    with transaction.atomic(), hashing_slot():
        change_password(
            user_id=UserId(str(request.user.pk)),
            verified_hash=verified_hash,
            password=new_password,
            address=client_address(request),
            now=timezone.now(),
        )
        assert isinstance(request.user, AbstractBaseUser)  # signed in
        request.user.refresh_from_db()
        finalize_password_change(request, request.user)
        end_other_sessions(request, request.user)


def _show_error(
    request: HttpRequest,
    member: CurrentMember,
    form: ChangePasswordForm,
    error: tuple[str, str],
    *,
    status: int = 400,
    retry_after_s: int | None = None,
) -> HttpResponse:
    """Show the form with an error. `error` is the name of the field and the message."""
    form.add_error(*error)
    response = render_page(request, member, _PAGE, {"form": form}, status=status)
    if retry_after_s is not None:
        response["Retry-After"] = str(retry_after_s)
    return response
