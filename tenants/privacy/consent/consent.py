"""The consent that results from receipts and a policy. Pure.

A user's consent counts while their last receipt of its kind is a yes to the current text. The
tenant's policy must allow it, also by its current text. Consent to training needs consent to
content capture.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import ContentCapturePolicy
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_TEXT, USER_WORDINGS, ConsentKind


@dataclass(frozen=True, slots=True)
class ConsentStatement:
    """The part of a receipt that decides consent."""

    kind: ConsentKind
    is_given: bool
    wording: str


@dataclass(frozen=True, slots=True)
class UserConsent:
    """The consent of a user, or what a tenant allows its users."""

    telemetry: bool
    training: bool

    def is_given(self, kind: ConsentKind) -> bool:
        return self.telemetry if kind is ConsentKind.TELEMETRY else self.training


NO_CONSENT: Final = UserConsent(telemetry=False, training=False)


def tenant_consent(policy: ContentCapturePolicy | None) -> UserConsent:
    """Return the consent that the tenant allows its users to give."""
    if policy is None or policy.wording != TENANT_CONSENT_TEXT:
        return NO_CONSENT
    return UserConsent(telemetry=True, training=policy.training)


def consent_of(said: Iterable[ConsentStatement]) -> UserConsent:
    """Return a user's consent from their receipts, oldest first, whatever the tenant allows."""
    last = {each.kind: each for each in said}
    telemetry, training = (
        is_current_yes(last.get(kind)) for kind in (ConsentKind.TELEMETRY, ConsentKind.TRAINING)
    )
    return UserConsent(telemetry=telemetry, training=telemetry and training)


def effective_consent(consent: UserConsent, allowance: UserConsent) -> UserConsent:
    """Return the consent that both the user gives and the tenant allows."""
    return UserConsent(
        telemetry=consent.telemetry and allowance.telemetry,
        training=consent.training and allowance.telemetry and allowance.training,
    )


def is_current_yes(said: ConsentStatement | None) -> bool:
    """Return whether the statement is a yes to the current text."""
    return said is not None and said.is_given and said.wording == USER_WORDINGS[said.kind]
