"""Removal of second factors that depend on an earlier root secret."""

import smtplib
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

import structlog
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import decrypt
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.validation.text import parse_reason
from tenants.identity.sso.mfa_events import MfaFactor
from tenants.models import User
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_memberships
from tenants.security.encryption.startup_check import require_root_keys

logger = structlog.get_logger(__name__)

# The fields of `Authenticator.data` that the root secret encrypts, by type. Passkeys have none.
_ENCRYPTED_FIELDS: Final = {
    Authenticator.Type.TOTP: "secret",
    Authenticator.Type.RECOVERY_CODES: "seed",
}
_FACTORS: Final = {
    Authenticator.Type.TOTP: MfaFactor.APP,
    Authenticator.Type.RECOVERY_CODES: MfaFactor.RECOVERY_CODES,
}
_SUBJECT: Final = "Your second factor for Caret was reset"
_TEXT: Final = """An operator of Caret replaced the secret that encrypted your second factor.

Authenticator apps and recovery codes that you set up for {email} do not work any more. If you used
an app, remove Caret from the app. Then sign in at {console}/sign-in and set up a new second factor
at {console}/account/second-factor.

Your password and your passkeys have not changed.
"""


def reset_undecryptable_factors(*, reason: str, now: datetime) -> int:
    """Remove the apps and recovery codes that the root secret cannot decrypt.

    Return the number of users who had such factors. Each gets an e-mail, and each of their tenants
    an audit entry for each factor. Users are independent: after an interruption, call it again.
    Raises InvalidValue, and RootKeysUnusable if the root keys do not belong to the database:
    probably the root secret does not, either, and would decrypt no user's factors.
    """
    reason = parse_reason(reason)
    require_root_keys()
    user_ids = Authenticator.objects.filter(type__in=_FACTORS).values_list("user_id", flat=True)
    return sum(
        _reset_user(user_id, reason, now) for user_id in user_ids.distinct().order_by("user_id")
    )


def _reset_user(user_id: UUID, reason: str, now: datetime) -> bool:
    """Return whether the user had undecryptable factors."""
    with transaction.atomic():
        rows = Authenticator.objects.select_for_update().filter(user_id=user_id, type__in=_FACTORS)
        factors = [row for row in rows.order_by("id") if not _is_decryptable(row)]
        for factor in factors:
            factor.delete()
        if factors:
            _record_reset(user_id, [_FACTORS[factor.type] for factor in factors], reason, now)
            transaction.on_commit(partial(_mail_user, user_id))
    return bool(factors)


def _is_decryptable(authenticator: Authenticator) -> bool:
    try:
        decrypt(authenticator.data[_ENCRYPTED_FIELDS[authenticator.type]])
    except DecryptionFailed:
        return False
    return True


def _record_reset(user_id: UUID, factors: list[MfaFactor], reason: str, now: datetime) -> None:
    tenants = find_memberships(user_id=UserId(str(user_id)))
    # In a fixed order, so that two transactions cannot deadlock.
    for tenant_id in sorted(tenant.tenant_id for tenant in tenants):
        with tenant_scope(tenant_id):
            for factor in factors:
                record_change(
                    actor=build_system_actor(tenant_id),
                    action="second_factor.reset",
                    target=f"user:{user_id}",
                    change=({"factor": factor}, None),
                    reason=reason,
                    now=now,
                )


def _mail_user(user_id: UUID) -> None:
    """Mail the user. A failure is only logged, because the factors are already removed."""
    email = User.objects.values_list("email", flat=True).get(id=user_id)
    text = _TEXT.format(email=email, console=settings.CONSOLE_URL)
    try:
        send_mail(_SUBJECT, text, None, [email])
    except (smtplib.SMTPException, OSError) as error:
        reason = type(error).__name__
        logger.warning("second_factor_reset.not_mailed", user_id=str(user_id), reason=reason)
