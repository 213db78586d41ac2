"""Yes and no to content being kept. Gateways act on it within a second."""

from dataclasses import dataclass
from datetime import datetime

from caret.contracts.policy import Telemetry
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.errors import Conflict, Forbidden, Invalid
from tenants.base.permissions import Permission
from tenants.fleet.snapshots.publisher import tenant_changed
from tenants.policy.queries import find_policy
from tenants.privacy.consent.consent import NO_CONSENT, Consent, allowance, allowed, consent_of
from tenants.privacy.consent.consent_texts import (
    TENANT_WORDING,
    USER_WORDINGS,
    Kind,
    require_current,
)
from tenants.privacy.consent.queries import OwnConsent, find_said, get_own_consent
from tenants.privacy.consent.receipts import (
    Answer,
    answers_of_choice,
    answers_of_policy,
    write_receipts,
)
from tenants.privacy.content_capture.erasure import Reason, demand_erasure, end_training
from tenants.security.audit.operations import Facts, record_change
from tenants.security.authorization.actor import Actor, ActorKind


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user agrees to, and which wordings he has read for it."""

    consent: Consent
    wordings: frozenset[str]


def set_consent(*, actor: Actor, choice: Choice, now: datetime) -> OwnConsent:
    """The user's own, and nobody else's. Saying again what was said changes nothing. A withdrawal
    makes all that was kept unreadable with it; its objects go within minutes.

    Raises Forbidden, Invalid, and Conflict for what the tenant does not allow.
    """
    user_id = _person(actor)
    _check(choice)
    with tenant(actor.tenant_id):
        tenant_changed(tenant_id=actor.tenant_id)  # locks the tenant: the policy stays as we see it
        lets = allowance(find_policy(tenant_id=actor.tenant_id).policy.telemetry)
        if allowed(choice.consent, lets) != choice.consent:
            raise Conflict("Your organisation does not allow this.")
        said = find_said(tenant_id=actor.tenant_id, user_id=user_id).get(user_id, [])
        if answers := answers_of_choice(user_id, said, choice.consent):
            write_receipts(answers, actor=actor, now=now)
            _erase_what_ended(actor, answers, now)
            _record(actor, user_id, change=(consent_of(said), choice.consent), now=now)
        return get_own_consent(actor=actor)


def withdraw_consent(*, actor: Actor, now: datetime) -> OwnConsent:
    """Raises Forbidden."""
    return set_consent(actor=actor, choice=Choice(NO_CONSENT, frozenset()), now=now)


def end_consent(*, actor: Actor, user_id: UserId, now: datetime) -> None:
    """Call in the transaction that ends a membership, with the tenant's row locked: who comes back
    is asked anew."""
    said = find_said(tenant_id=actor.tenant_id, user_id=user_id).get(user_id, [])
    answers = answers_of_choice(user_id, said, NO_CONSENT)
    write_receipts(answers, actor=actor, now=now)
    _erase_what_ended(actor, answers, now)


def note_allowance(
    *,
    actor: Actor,
    change: tuple[Telemetry | None, Telemetry | None],
    policy_version: int,
    now: datetime,
) -> None:
    """Call in the transaction of a change of policy, with the tenant's row locked: leaves receipts
    of what the tenant allows or no longer allows, whose users' consent ends with it. Raises
    Invalid."""
    before, after = change
    answers = answers_of_policy(before, after)
    if any(answer.is_given for answer in answers) and after is not None:
        require_current("telemetry.wording", asked=after.wording, current=TENANT_WORDING)
    if not all(answer.is_given for answer in answers):
        lets = allowance(after)
        for user_id, said in find_said(tenant_id=actor.tenant_id).items():
            answers += answers_of_choice(user_id, said, allowed(consent_of(said), lets))
    write_receipts(answers, actor=actor, now=now, policy_version=policy_version)
    _erase_what_ended(actor, answers, now)


def _erase_what_ended(actor: Actor, answers: list[Answer], now: datetime) -> None:
    ended = [each for each in answers if each.user_id is not None and not each.is_given]
    end_training(
        tenant_id=actor.tenant_id, user_ids=[each.user_id for each in ended if each.user_id]
    )
    for each in ended:
        if each.kind is Kind.TELEMETRY and each.user_id is not None:
            demand_erasure(actor=actor, user_id=each.user_id, reason=Reason.WITHDRAWN, now=now)


def _person(actor: Actor) -> UserId:
    actor.require(Permission.OWN_CONSENT)
    if actor.kind is not ActorKind.USER or actor.user_id is None:
        raise Forbidden("People agree for themselves, signed in; no key does it for them.")
    return actor.user_id


def _check(choice: Choice) -> None:
    if choice.consent.training and not choice.consent.telemetry:
        raise Invalid("training", "Only what is kept can train models: agree to telemetry, too.")
    for kind, current in USER_WORDINGS.items():
        if choice.consent.of(kind) and current not in choice.wordings:
            require_current("wordings", asked="", current=current)


def _record(
    actor: Actor, user_id: UserId, *, change: tuple[Consent, Consent], now: datetime
) -> None:
    before, after = change
    record_change(
        actor=actor,
        action="consent.changed",
        target=f"user:{user_id}",
        change=(_facts(before), _facts(after)),
        now=now,
    )


def _facts(consent: Consent) -> Facts:
    return {"telemetry": consent.telemetry, "training": consent.training}
