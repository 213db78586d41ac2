"""E-mails to a tenant's owners about a new status: what stops, and what to do."""

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
            "Editors get no completions, and nothing can be changed in the console.\nExport the "
            "data that you want to keep at {console}/exports before the tenant is closed.\nIf this "
            "is a mistake, contact the operator of your Caret installation."
        ),
        TenantStatus.CLOSED: "Nobody can sign in to this tenant any more. This is final.",
    }
)
_TEXT: Final = """{subject} in Caret, the code-completion service.

Time: {when:%Y-%m-%d %H:%M} UTC
Reason: {reason}

{effect}
"""


def mail_status_to_owners(
    *, tenant_id: TenantId, name: str, status: TenantStatus, reason: str, now: datetime
) -> None:
    """Mail the new status to the owners on commit.

    A failed e-mail is logged, because the change is already made.
    """
    owners = [row.email for row in list_members(tenant_id=tenant_id) if row.role is Role.OWNER]
    if not owners:
        return
    subject = _SUBJECTS[status].format(name=name)
    effect = _EFFECTS[status].format(console=settings.CONSOLE_URL)
    text = _TEXT.format(subject=subject, when=now, reason=reason or "not given", effect=effect)
    transaction.on_commit(partial(_send, tenant_id, owners, subject, text))


def _send(tenant_id: TenantId, owners: list[str], subject: str, text: str) -> None:
    try:
        send_mail(subject, text, None, owners)
    except (smtplib.SMTPException, OSError) as error:
        reason = type(error).__name__
        logger.warning("tenant_status.not_mailed", tenant_id=tenant_id, reason=reason)
