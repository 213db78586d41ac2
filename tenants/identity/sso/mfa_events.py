"""Audit entries and e-mails for changes of passkeys, authenticator apps and recovery codes.

Each change is recorded in all tenants of the user, and the user is notified by e-mail.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from caret.foundation.ids import UserId
from tenants.identity.members.account_changes import notify_user, record_account_change
from tenants.security.audit.operations import ChangeFields


class MfaFactor(StrEnum):
    """The second factor, as audit entries name it."""

    PASSKEY = "passkey"
    APP = "app"  # an authenticator app, which shows one-time codes
    RECOVERY_CODES = "recovery_codes"


class MfaEvent(StrEnum):
    """The event, as audit entries name it."""

    ADDED = "added"
    REMOVED = "removed"
    RENEWED = "renewed"  # only recovery codes


@dataclass(frozen=True, slots=True)
class MfaChange:
    factor: MfaFactor
    event: MfaEvent


# The changes that can occur, with the subjects of their e-mails.
_SUBJECTS: Final = {
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


def record_mfa_change(*, user_id: UserId, change: MfaChange, address: str, now: datetime) -> None:
    """Record a change, and mail it to the user on commit.

    Call this as the last step of the transaction, like record_account_change. `address` is the
    client's IP address.
    """
    facts: ChangeFields = {"factor": change.factor}
    before = None if change.event is MfaEvent.ADDED else facts
    after = None if change.event is MfaEvent.REMOVED else facts
    record_account_change(
        user_id=user_id,
        action=f"second_factor.{change.event}",
        change=(before, after),
        address=address,
        now=now,
    )
    notify_user(user_id=user_id, subject=_SUBJECTS[change], address=address, now=now)
