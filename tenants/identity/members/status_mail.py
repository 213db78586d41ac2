"""E-mails to a tenant's owners or other members about the tenant.

The e-mail about a new status describes its effects, and tells the owners what they can do.
"""

import smtplib
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from tenants.base.permissions import Role
from tenants.models import Tenant
from tenants.security.authorization.directory import list_members

logger = structlog.get_logger(__name__)

_SUBJECTS: Final[Mapping[TenantStatus, str]] = MappingProxyType(
    {
        TenantStatus.ACTIVE: "{name} is active again",
        TenantStatus.SUSPENDED: "{name} was suspended",
        TenantStatus.CLOSING: "{name} is closing",
        TenantStatus.CLOSED: "{name} was closed",
    }
)
_EFFECTS: Final[Mapping[TenantStatus, str]] = MappingProxyType(
    {
        TenantStatus.ACTIVE: "Editors get completions again. You do not need to do anything.",
        TenantStatus.SUSPENDED: (
            "Editors get no completions, and the gateway rejects all API keys. You can still sign "
            "in to the console.\nTo resume, contact the operator of your Caret installation."
        ),
        TenantStatus.CLOSING: (
            "Editors get no completions. In the console, you can read, export and erase data, but "
            "change nothing else.\n{closing} the tenant and delete its data.\nUntil then, you can "
            "download the final export, which contains all of your data, at {console}/exports.\nIf "
            "this is a mistake, contact the operator of your Caret installation."
        ),
        TenantStatus.CLOSED: (
            "Nobody can sign in to this tenant any more, and its data is being deleted. This is "
            "final.\nThe operator of your Caret installation can give you the deletion certificate."
        ),
    }
)
_ABOUT: Final = "This e-mail is about your tenant in Caret, the code-completion service."
_TEXT: Final = """Time: {when:%Y-%m-%d %H:%M} UTC
Reason: {reason}

{effect}"""


def mail_status_to_owners(
    *, tenant: Tenant, status: TenantStatus, reason: str, now: datetime, closes_at: datetime | None
) -> None:
    """Mail the new status to the owners on commit.

    `closes_at` is the time at which a closing tenant is closed; None: an operator decides the
    time. A failure to send is only logged, because the change is already made.
    """
    # The beginning of a sentence of _EFFECTS, which needs it only for the status CLOSING.
    closing = (
        "The operator will close"
        if closes_at is None
        else f"On {closes_at:%Y-%m-%d}, we will close"
    )
    effect = _EFFECTS[status].format(console=settings.CONSOLE_URL, closing=closing)
    mail_owners(
        tenant_id=TenantId(str(tenant.id)),
        subject=_SUBJECTS[status].format(name=tenant.name),
        text=_TEXT.format(when=now, reason=reason or "not given", effect=effect),
    )


def mail_owners(*, tenant_id: TenantId, subject: str, text: str) -> None:
    """Mail all owners on commit. A failure to send is logged."""
    owners = [row.email for row in list_members(tenant_id=tenant_id) if row.role is Role.OWNER]
    mail_addresses(tenant_id=tenant_id, emails=owners, subject=subject, text=text)


def mail_addresses(*, tenant_id: TenantId, emails: list[str], subject: str, text: str) -> None:
    """Mail some members of a tenant on commit. A failure to send is logged."""
    if emails:
        body = f"{subject}.\n\n{text}\n\n{_ABOUT}\n"
        transaction.on_commit(partial(_send, tenant_id, emails, _to_one_line(subject), body))


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def _send(tenant_id: TenantId, emails: list[str], subject: str, text: str) -> None:
    try:
        send_mail(subject, text, None, emails)
    except (smtplib.SMTPException, OSError) as error:
        reason = type(error).__name__
        logger.warning("tenant_mail.not_sent", tenant_id=tenant_id, reason=reason)
