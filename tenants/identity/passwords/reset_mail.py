"""E-mails for resetting a password, on request of a user or of an operator.

The console only queues a request. A worker looks up the account and sends the e-mail. So neither
the console's response nor its duration depends on whether the account exists.

The queue is a list in Redis:

    caret:password-reset-requests   encrypted [e-mail address, Unix time of request], newest first
"""

import json
import smtplib
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.base.validation.text import is_storable, parse_reason
from tenants.identity.passwords.reset_links import ResetLink
from tenants.identity.sso.queries import find_provider_for_email
from tenants.models import User
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_memberships

logger = structlog.get_logger(__name__)

_QUEUE: Final = "caret:password-reset-requests"
_MAX_WAITING: Final = 10_000  # if more requests wait, the oldest are dropped
_MAX_AGE: Final = timedelta(hours=1)  # no e-mail is sent for older requests
_MAX_EMAILS: Final = 20  # per run; a slow mail server delays other tasks
# Requests per run. A request for an unknown address costs only a look-up, which takes milliseconds.
# So even many such requests hardly delay those for real accounts.
_MAX_LOOKUPS: Final = 500
_PURPOSE: Final = "password-reset-requests/1"  # of the queue's encryption key
_BY_USER: Final = (
    "Somebody, probably you, asked to reset the password of your Caret account {email}."
)
_BY_OPERATOR: Final = "An operator of Caret sent you this link to set a new password for {email}."
_LINK: Final = """{opening}

{url}

The link works once and expires after one hour. A new password signs you out everywhere.
If you do not want a new password, ignore this e-mail: your current one stays valid.
"""
_SINGLE_SIGN_ON: Final = """{opening}

Your tenant requires single sign-on for this address, so there is no password to reset.
Enter the address at {console}/sign-in and select "Single sign-on".
If this was not you, you can ignore this e-mail.
"""


def enqueue_reset_request(*, email: str, now: datetime) -> None:
    """Queue a request for the worker, whether the account exists or not.

    Raises redis.RedisError.
    """
    request = json.dumps([email.strip().lower(), now.timestamp()]).encode()
    pipeline = connect_to_redis().pipeline()
    pipeline.lpush(_QUEUE, seal(_derive_encryption_key(), request, bound_to=_PURPOSE.encode()))
    pipeline.ltrim(_QUEUE, 0, _MAX_WAITING - 1)
    pipeline.expire(_QUEUE, _MAX_AGE)
    pipeline.execute()


def mail_requested_links(*, now: datetime) -> int:
    """Send the e-mails of queued requests. Return the number of requests removed from the queue.

    Each request is processed at most once. If the e-mail is not sent, because of a crash or of the
    mail server, the user must request it again. Raises redis.RedisError.
    """
    num_emails = 0
    for num_removed in range(_MAX_LOOKUPS):
        if num_emails == _MAX_EMAILS:
            return num_removed
        message = connect_to_redis().rpop(_QUEUE)
        if not isinstance(message, bytes):  # the queue is empty
            return num_removed
        is_accepted = _process_request(message, now)
        if is_accepted is False:
            # Stop: the mail server may not respond, and other tasks wait for this one.
            return num_removed + 1
        if is_accepted:
            num_emails += 1
    return _MAX_LOOKUPS


def mail_reset_link_as_operator(*, email: str, reason: str, now: datetime) -> None:
    """Send a user the link that an operator requested. Each tenant of the user gets an audit entry.

    Raises InvalidValue, NotFound, and Conflict if the user must use single sign-on or the mail
    server did not accept the e-mail.
    """
    reason = parse_reason(reason)
    user = _find_user(email)
    if user is None:
        raise NotFound("There is no active account {email}.", email=email)
    if find_provider_for_email(user.email) is not None:
        raise Conflict("{email} must use single sign-on and has no password.", email=email)
    if not _mail_link(user, _BY_OPERATOR):
        raise Conflict("The mail server did not accept the e-mail.")
    for tenant in find_memberships(user_id=UserId(str(user.id))):
        with tenant_scope(tenant.tenant_id):
            record_change(
                actor=build_system_actor(tenant.tenant_id),
                action="password.reset_link_sent",
                target=f"user:{user.id}",
                change=(None, None),
                reason=reason,
                now=now,
            )


def _process_request(message: bytes, now: datetime) -> bool | None:
    """Send the e-mail for one request, unless it is too old or there is no active account.

    Return whether the mail server accepted the e-mail; None: no e-mail was to be sent.
    """
    try:
        email, requested_at_s = json.loads(
            unseal(_derive_encryption_key(), message, bound_to=_PURPOSE.encode())
        )
    except DecryptionFailed:  # queued before a change of the root secret
        logger.warning("password_reset.unreadable_request")
        return None
    user = _find_user(email)
    if user is None or now.timestamp() - requested_at_s > _MAX_AGE.total_seconds():
        return None
    if find_provider_for_email(user.email) is not None:
        opening = _BY_USER.format(email=user.email)
        text = _SINGLE_SIGN_ON.format(opening=opening, console=settings.CONSOLE_URL)
        return _send_mail(user, "Sign in to Caret with single sign-on", text)
    return _mail_link(user, _BY_USER)


def _find_user(email: str) -> User | None:
    """Return the active user with this address, even if the user has no password yet."""
    if not is_storable(email):
        return None
    users = User.objects.filter(email=email.strip().lower(), is_active=True)
    return users.order_by("id").first()  # type: ignore[no-any-return]  # the manager is untyped


def _mail_link(user: User, opening: str) -> bool:
    text = _LINK.format(opening=opening.format(email=user.email), url=ResetLink.for_user(user).url)
    return _send_mail(user, "Reset your Caret password", text)


def _send_mail(user: User, subject: str, text: str) -> bool:
    """Send the e-mail. Return False if the mail server did not accept it."""
    try:
        send_mail(subject, text, None, [user.email])
    except (smtplib.SMTPException, OSError) as error:
        reason = type(error).__name__
        logger.warning("password_reset.not_mailed", user_id=str(user.id), reason=reason)
        return False
    return True


def _derive_encryption_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, _PURPOSE)
