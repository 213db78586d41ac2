"""E-mail of an invitation."""

import smtplib
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from tenants.base.bearer_tokens import TenantToken

logger = structlog.get_logger(__name__)

_TEXT: Final = """You are invited to join {tenant} in Caret, the code-completion service.

{url}

The link works once, within seven days, for {email} only.
If you did not expect it, there is nothing you need to do.
"""


def send_invitation(email: str, token: TenantToken, *, tenant_name: str) -> bool:
    """Send the e-mail. Return False if the mail server did not accept it."""
    name = " ".join(tenant_name.split())  # a subject must be one line
    url = f"{settings.CONSOLE_URL}/invitation/{token.text}"
    text = _TEXT.format(tenant=name, url=url, email=email)
    try:
        send_mail(f"Join {name} in Caret", text, None, [email])
    except (smtplib.SMTPException, OSError) as error:
        logger.warning(
            "invitation.not_mailed", tenant_id=token.tenant_id, reason=type(error).__name__
        )
        return False
    return True
