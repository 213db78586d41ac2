"""Audit entries and e-mails for changes of passkeys, authenticator apps and recovery codes.

Each change is recorded in all tenants of the user, and the user is notified by e-mail. A thief of a
session would add a passkey first.
"""

import smtplib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
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
from tenants.security.authorization.directory import MembershipRow, find_memberships

logger = structlog.get_logger(__name__)


class MfaFactor(StrEnum):
    PASSKEY = "passkey"
    APP = "app"
    RECOVERY_CODES = "recovery_codes"


class MfaEvent(StrEnum):
    """The event, as audit entries name it."""

    ADDED = "added"
    REMOVED = "removed"
    RENEWED = "renewed"


@dataclass(frozen=True, slots=True)
class MfaChange:
    factor: MfaFactor
    event: MfaEvent


_WORDS: Final = {
    MfaChange(MfaFactor.PASSKEY, MfaEvent.ADDED): "A passkey was added to your account",
    MfaChange(MfaFactor.PASSKEY, MfaEvent.REMOVED): "A passkey was removed from your account",
    MfaChange(MfaFactor.APP, MfaEvent.ADDED): "An authenticator app was added to your account",
    MfaChange(
        MfaFactor.APP, MfaEvent.REMOVED
    ): "The authenticator app was removed from your account",
    MfaChange(
        MfaFactor.RECOVERY_CODES, MfaEvent.RENEWED
    ): "New recovery codes were created for your account",
}
_TEXT: Final = """{what} in Caret, the code-completion service.

Time: {when:%Y-%m-%d %H:%M} UTC
IP address: {address}

If this was you, you do not need to do anything. If not, contact your administrator immediately
and check your sessions at {sessions}
"""


def record_mfa_change(*, user_id: UserId, change: MfaChange, address: str, now: datetime) -> None:
    """Record a change, as the last step of its transaction, and send the e-mail on commit.

    A failed e-mail is logged, because the change is already made.
    """
    request_id = str(uuid4())
    # In a fixed order, because each tenant's chain stays locked until the commit.
    for row in sorted(find_memberships(user_id=user_id), key=lambda row: row.tenant_id):
        _record_change(_build_actor(row, user_id, address, request_id), change, now)
    email = User.objects.values_list("email", flat=True).get(id=user_id)
    text = _TEXT.format(
        what=_WORDS[change],
        when=now,
        address=address,
        sessions=f"{settings.CONSOLE_URL}/account/sessions",
    )
    transaction.on_commit(partial(_send_mail, user_id, email, _WORDS[change], text))


def _record_change(actor: Actor, change: MfaChange, now: datetime) -> None:
    facts: ChangeFields = {"factor": change.factor}
    held = None if change.event is MfaEvent.ADDED else facts
    holds = None if change.event is MfaEvent.REMOVED else facts
    with tenant_scope(actor.tenant_id):
        record_change(
            actor=actor,
            action=f"second_factor.{change.event}",
            target=f"user:{actor.user_id}",
            change=(held, holds),
            now=now,
        )


def _build_actor(row: MembershipRow, user_id: UserId, address: str, request_id: str) -> Actor:
    return Actor(row.tenant_id, user_id, row.role, address, request_id)


def _send_mail(user_id: UserId, email: str, subject: str, text: str) -> None:
    try:
        send_mail(subject, text, None, [email])
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("second_factor.not_mailed", user_id=user_id, reason=type(error).__name__)
