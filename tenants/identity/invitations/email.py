"""The e-mail that invites a user to a tenant."""

import smtplib
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import send_mail

from tenants.base.bearer_tokens import TenantToken

logger = structlog.get_logger(__name__)

_TEXT: Final = """You have been invited to join {tenant} in Caret, the code-completion service.

{url}

The link works once, only for {email}, and expires after seven days.
If you did not expect this invitation, you can ignore this e-mail.
"""


def build_invitation_url(token: TenantToken) -> str:
    return f"{settings.CONSOLE_URL}/invitation/{token.text}"


def send_invitation(email: str, token: TenantToken, *, tenant_name: str) -> bool:
    """Send the e-mail. Return False if the mail server did not accept it."""
    name = " ".join(tenant_name.split())  # on one line, as the subject requires
    text = _TEXT.format(tenant=name, url=build_invitation_url(token), email=email)
    try:
        send_mail(f"Invitation to join {name} in Caret", text, None, [email])
    except (smtplib.SMTPException, OSError) as error:
        logger.warning(
            "invitation.not_mailed", tenant_id=token.tenant_id, reason=type(error).__name__
        )
        return False
    return True
