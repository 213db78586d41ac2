"""What receipts and a policy mean together. Pure.

A user's consent counts while his last receipt of its kind is a yes to the wording in force, and the
tenant's policy allows it, likewise by the wording in force. Training counts with telemetry only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Telemetry
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_TEXT, USER_WORDINGS, ConsentKind


@dataclass(frozen=True, slots=True)
class ConsentStatement:
    """A receipt's gist."""

    kind: ConsentKind
    is_given: bool
    wording: str


@dataclass(frozen=True, slots=True)
class UserConsent:
    """Of a user."""

    telemetry: bool
    training: bool

    def is_given(self, kind: ConsentKind) -> bool:
        return self.telemetry if kind is ConsentKind.TELEMETRY else self.training


NO_CONSENT: Final = UserConsent(telemetry=False, training=False)


def tenant_consent(policy: Telemetry | None) -> UserConsent:
    """What the tenant lets its users agree to."""
    if policy is None or policy.wording != TENANT_CONSENT_TEXT:
        return NO_CONSENT
    return UserConsent(telemetry=True, training=policy.training)


def consent_of(said: Iterable[ConsentStatement]) -> UserConsent:
    """Of one user, whose receipts come in the order of time; whatever the tenant allows."""
    last = {each.kind: each for each in said}
    telemetry, training = (
        is_current_yes(last.get(kind)) for kind in (ConsentKind.TELEMETRY, ConsentKind.TRAINING)
    )
    return UserConsent(telemetry=telemetry, training=telemetry and training)


def effective_consent(consent: UserConsent, allowance: UserConsent) -> UserConsent:
    """Both keys turned."""
    return UserConsent(
        telemetry=consent.telemetry and allowance.telemetry,
        training=consent.training and allowance.telemetry and allowance.training,
    )


def is_current_yes(said: ConsentStatement | None) -> bool:
    """To the wording in force."""
    return said is not None and said.is_given and said.wording == USER_WORDINGS[said.kind]
