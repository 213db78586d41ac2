"""Audit entries and e-mails about changes of a user's sign-in methods.

Each change is recorded in all of the user's tenants and mailed to the user, because a thief of a
session may change the password or the second factor.
"""

import smtplib
from datetime import datetime
from functools import partial
from typing import Final
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import User
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_memberships

logger = structlog.get_logger(__name__)

_TEXT: Final = """{what} in Caret, the code-completion service.

Time: {when:%Y-%m-%d %H:%M} UTC
IP address: {address}

If this was you, you do not need to do anything. If not, contact your administrator immediately
and {advice}
"""
_CHECK_SESSIONS: Final = "check your sessions at {console}/account/sessions"
RESET_PASSWORD: Final = "set a new password at {console}/forgot-password"  # noqa: S105  # a text


def record_account_change(
    *,
    user_id: UserId,
    action: str,
    change: tuple[ChangeFields | None, ChangeFields | None],
    address: str,
    now: datetime,
) -> None:
    """Record a change that a user made, in the audit log of each of the user's tenants.

    Call this as the last step of the transaction, because the audit logs stay locked until the
    commit. `address` is the user's IP address.
    """
    request_id = str(uuid4())
    # In a fixed order, so that two transactions cannot deadlock.
    for row in sorted(find_memberships(user_id=user_id), key=lambda row: row.tenant_id):
        with tenant_scope(row.tenant_id):
            record_change(
                actor=Actor(row.tenant_id, user_id, row.role, address, request_id),
                action=action,
                target=f"user:{user_id}",
                change=change,
                now=now,
            )


def notify_user(
    *, user_id: UserId, subject: str, address: str, now: datetime, advice: str = _CHECK_SESSIONS
) -> None:
    """Mail a change to the user on commit. `subject` also begins the text.

    `advice` ends the sentence "contact your administrator immediately and ..."; `{console}` in
    `advice` is replaced by the URL of the console. A failure to send is only logged, because the
    change is already made.
    """
    email = User.objects.values_list("email", flat=True).get(id=user_id)
    advice = advice.format(console=settings.CONSOLE_URL)
    text = _TEXT.format(what=subject, when=now, address=address, advice=advice)
    transaction.on_commit(partial(_send_mail, user_id, email, subject, text))


def _send_mail(user_id: UserId, email: str, subject: str, text: str) -> None:
    try:
        send_mail(subject, text, None, [email])
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("account_change.not_mailed", user_id=user_id, reason=type(error).__name__)
