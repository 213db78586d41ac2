"""The consent that results from receipts and a policy. Pure.

A user's consent of a kind counts while their last receipt of this kind is a yes to the current
text. The tenant's policy must allow this kind of consent, and must name the current text for
tenants. Consent to training needs consent to content capture.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import ContentCapturePolicy
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    ConsentKind,
)


@dataclass(frozen=True, slots=True)
class ConsentStatement:
    """The part of a receipt that decides consent."""

    kind: ConsentKind
    is_granted: bool
    wording: str  # version of the consent text


@dataclass(frozen=True, slots=True)
class UserConsent:
    """The consent that a user gives, or that a tenant allows its users to give."""

    content_capture: bool
    training: bool

    def is_granted(self, kind: ConsentKind) -> bool:
        return self.content_capture if kind is ConsentKind.CONTENT_CAPTURE else self.training


NO_CONSENT: Final = UserConsent(content_capture=False, training=False)


def get_tenant_consent(policy: ContentCapturePolicy | None) -> UserConsent:
    """Return the consent that the tenant allows its users to give."""
    if policy is None or policy.consent_text != TENANT_CONSENT_VERSION:
        return NO_CONSENT
    return UserConsent(content_capture=True, training=policy.training)


def compute_user_consent(statements: Iterable[ConsentStatement]) -> UserConsent:
    """Return the consent that a user has given, even if the tenant does not allow it.

    `statements` are from the user's receipts, oldest first.
    """
    last = {statement.kind: statement for statement in statements}
    content_capture, training = (
        is_current_yes(last.get(kind))
        for kind in (ConsentKind.CONTENT_CAPTURE, ConsentKind.TRAINING)
    )
    return UserConsent(content_capture=content_capture, training=content_capture and training)


def compute_effective_consent(consent: UserConsent, allowance: UserConsent) -> UserConsent:
    """Return the part of a user's consent that the tenant allows (`allowance`)."""
    return UserConsent(
        content_capture=consent.content_capture and allowance.content_capture,
        training=consent.training and allowance.content_capture and allowance.training,
    )


def is_current_yes(statement: ConsentStatement | None) -> bool:
    """Return whether the statement is a yes to the current text."""
    return (
        statement is not None
        and statement.is_granted
        and statement.wording == USER_CONSENT_VERSIONS[statement.kind]
    )
