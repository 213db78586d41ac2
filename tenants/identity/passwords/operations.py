"""Operations that set users' passwords."""

from datetime import datetime
from typing import Final

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext_noop

from caret.foundation.ids import UserId
from tenants.base.errors import Conflict, NotFound
from tenants.base.validation.text import is_storable
from tenants.identity.members.access_changes import announce_access_change
from tenants.identity.members.account_changes import (
    RESET_PASSWORD,
    notify_user,
    record_account_change,
)
from tenants.identity.members.password_validation import set_valid_password
from tenants.identity.members.sessions import end_all_sessions
from tenants.identity.passwords.reset_links import ResetLink
from tenants.identity.sso.queries import find_provider_for_email
from tenants.models import User

_CHANGED_MEANWHILE: Final = gettext_noop(
    "Your password was changed in the meantime. Sign in again with the new one."
)
_INVALID_LINK: Final = gettext_noop("This link was already used, or it has expired.")


def set_password(*, user_id: UserId, password: str) -> None:
    """Set a password without an audit entry.

    The user's sessions end, because they depend on the password hash. Raises InvalidValue.
    """
    user = User.objects.get(id=user_id)
    set_valid_password(user, password)
    user.save(update_fields=["password"])
    announce_access_change(user_id)


def change_password(
    *, user_id: UserId, verified_hash: str, password: str, address: str, now: datetime
) -> None:
    """Set a new password for a user who has entered the current one.

    `verified_hash` is the stored hash that the entered password matched. `address` is the user's IP
    address. Raises InvalidValue, and Conflict if the stored hash has changed since then.
    """
    with transaction.atomic():
        user = User.objects.select_for_update().get(id=user_id)
        if not constant_time_compare(user.password, verified_hash):
            raise Conflict(_CHANGED_MEANWHILE)
        set_valid_password(user, password)
        user.save(update_fields=["password"])
        announce_access_change(user_id)
        _record_and_notify(user_id, "password.changed", "Your password was changed", address, now)


def find_reset_email(link: ResetLink) -> str:
    """Return the e-mail address of the link's account.

    Raises NotFound if the link is forged, used or expired, or if the account is inactive, has
    another e-mail address now, or must use single sign-on.
    """
    return _require_valid(link, User.objects.filter(id=link.user_id).order_by("id").first()).email


def reset_password(*, link: ResetLink, password: str, address: str, now: datetime) -> None:
    """Set a new password with a link, which works once, and end all sessions of the user.

    `address` is the user's IP address. Raises InvalidValue, and NotFound like `find_reset_email`.
    """
    user_id = UserId(str(link.user_id))
    with transaction.atomic():
        # The second of two concurrent uses waits here and finds another password hash.
        rows = User.objects.select_for_update().filter(id=link.user_id)
        user = _require_valid(link, rows.order_by("id").first())
        set_valid_password(user, password)
        user.save(update_fields=["password"])
        end_all_sessions(user_id=user_id)
        _record_and_notify(user_id, "password.reset", "Your password was reset", address, now)


def find_password_version(*, email: str) -> str:
    """Return the password version of the account with this e-mail address; "": no such account."""
    passwords = User.objects.filter(email=email.strip().lower()).values_list("password", flat=True)
    password = passwords.order_by("id").first() if is_storable(email) else None
    return "" if password is None else compute_password_version(password)


def compute_password_version(password_hash: str) -> str:
    """Return the password version: a short digest of the hash, which every new password changes."""
    digest = salted_hmac("caret.password-version/1", password_hash, algorithm="sha256")
    return digest.hexdigest()[:16]


def _require_valid(link: ResetLink, user: User | None) -> User:
    """Return the user of a valid link. Raises NotFound."""
    if (
        user is None
        or not link.is_valid_for(user)
        or find_provider_for_email(user.email) is not None
    ):
        raise NotFound(_INVALID_LINK)
    return user


def _record_and_notify(
    user_id: UserId, action: str, subject: str, address: str, now: datetime
) -> None:
    record_account_change(
        user_id=user_id, action=action, change=(None, None), address=address, now=now
    )
    notify_user(user_id=user_id, subject=subject, address=address, now=now, advice=RESET_PASSWORD)
