"""What receipts and a policy mean together. Pure.

A user's consent counts while his last receipt of its kind is a yes to the wording in force, and the
tenant's policy allows it, likewise by the wording in force. Training counts with telemetry only.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Telemetry
from tenants.privacy.consent.consent_texts import TENANT_WORDING, USER_WORDINGS, Kind


@dataclass(frozen=True, slots=True)
class Said:
    """A receipt's gist."""

    kind: Kind
    is_given: bool
    wording: str


@dataclass(frozen=True, slots=True)
class Consent:
    """Of a user."""

    telemetry: bool
    training: bool

    def of(self, kind: Kind) -> bool:
        return self.telemetry if kind is Kind.TELEMETRY else self.training


NO_CONSENT: Final = Consent(telemetry=False, training=False)


def allowance(policy: Telemetry | None) -> Consent:
    """What the tenant lets its users agree to."""
    if policy is None or policy.wording != TENANT_WORDING:
        return NO_CONSENT
    return Consent(telemetry=True, training=policy.training)


def consent_of(said: Iterable[Said]) -> Consent:
    """Of one user, whose receipts come in the order of time; whatever the tenant allows."""
    last = {each.kind: each for each in said}
    telemetry, training = (is_yes(last.get(kind)) for kind in (Kind.TELEMETRY, Kind.TRAINING))
    return Consent(telemetry=telemetry, training=telemetry and training)


def allowed(consent: Consent, allowance: Consent) -> Consent:
    """Both keys turned."""
    return Consent(
        telemetry=consent.telemetry and allowance.telemetry,
        training=consent.training and allowance.telemetry and allowance.training,
    )


def is_yes(said: Said | None) -> bool:
    """To the wording in force."""
    return said is not None and said.is_given and said.wording == USER_WORDINGS[said.kind]
