"""Operations on consent to content capture and training. Gateways act on them within a second."""

from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.operations import PolicyChange
from tenants.policy.queries import load_active_policy
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.consent.consent import (
    NO_CONSENT,
    UserConsent,
    compute_effective_consent,
    compute_user_consent,
    get_tenant_consent,
)
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    ConsentKind,
    require_current_version,
)
from tenants.privacy.consent.queries import OwnConsent, find_latest_statements, get_own_consent
from tenants.privacy.consent.receipts import (
    ReceiptDraft,
    draft_receipts_of_choice,
    draft_receipts_of_policy,
    write_receipts,
)
from tenants.privacy.content_capture.erasure import (
    ContentErasureReason,
    exclude_from_training,
    request_content_erasure,
)
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor, ActorKind


@dataclass(frozen=True, slots=True)
class ConsentChoice:
    """The consent that a user gives, and the texts that the user has read for it."""

    consent: UserConsent
    consent_texts: frozenset[str]  # versions


def set_consent(*, actor: Actor, choice: ConsentChoice, now: datetime) -> OwnConsent:
    """Set the actor's own consent. Repeating the current consent writes no receipt.

    If the user withdraws consent to content capture, the stored content becomes unreadable at once,
    and its objects are deleted within minutes. If the user withdraws only consent to training, the
    stored content is excluded from training. Raises Forbidden, InvalidValue, and Conflict for
    consent that the tenant does not allow.
    """
    user_id = _require_user(actor)
    _check_choice(choice)
    with tenant_scope(actor.tenant_id):
        # This locks the tenant's row, so that the policy cannot change in the meantime.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        allowance = get_tenant_consent(
            load_active_policy(tenant_id=actor.tenant_id).content_capture
        )
        if compute_effective_consent(choice.consent, allowance) != choice.consent:
            raise Conflict("Your tenant does not allow this.")
        statements = find_latest_statements(tenant_id=actor.tenant_id, user_id=user_id).get(
            user_id, []
        )
        if drafts := draft_receipts_of_choice(user_id, statements, choice.consent):
            write_receipts(drafts, actor=actor, now=now)
            _erase_content_of_ended_consents(actor, drafts, now)
            _record_consent_change(
                actor, user_id, change=(compute_user_consent(statements), choice.consent), now=now
            )
        return get_own_consent(actor=actor)


def withdraw_consent(*, actor: Actor, now: datetime) -> OwnConsent:
    """Withdraw the actor's consent of both kinds. Raises Forbidden."""
    return set_consent(actor=actor, choice=ConsentChoice(NO_CONSENT, frozenset()), now=now)


def end_consent(*, actor: Actor, user_id: UserId, now: datetime) -> None:
    """End a user's consent in the transaction that ends the membership.

    The tenant's row must be locked. A user who becomes a member again must consent again.
    """
    statements = find_latest_statements(tenant_id=actor.tenant_id, user_id=user_id).get(user_id, [])
    drafts = draft_receipts_of_choice(user_id, statements, NO_CONSENT)
    write_receipts(drafts, actor=actor, now=now)
    _erase_content_of_ended_consents(actor, drafts, now)


def record_consent_by_policy(change: PolicyChange) -> None:
    """Write the tenant's receipts for consent that a change of policy gives or ends.

    The consent of a user also ends if the policy no longer allows it. Raises InvalidValue if the
    policy newly gives consent but does not name the current consent text.
    """
    actor, now = change.actor, change.now
    before, after = change.old.content_capture, change.new.content_capture
    drafts = draft_receipts_of_policy(before, after)
    if any(draft.is_granted for draft in drafts) and after is not None:
        require_current_version(
            "content_capture.consent_text",
            accepted_versions=[after.consent_text],
            current=TENANT_CONSENT_VERSION,
        )
    if any(not draft.is_granted for draft in drafts):
        allowance = get_tenant_consent(after)
        for user_id, statements in find_latest_statements(tenant_id=actor.tenant_id).items():
            drafts += draft_receipts_of_choice(
                user_id,
                statements,
                compute_effective_consent(compute_user_consent(statements), allowance),
            )
    write_receipts(drafts, actor=actor, now=now, policy_version=change.version)
    _erase_content_of_ended_consents(actor, drafts, now)


def _erase_content_of_ended_consents(
    actor: Actor, drafts: list[ReceiptDraft], now: datetime
) -> None:
    """Apply each no of a user in the drafts to the user's stored content.

    A no to content capture erases the content. A no to training excludes it from training.
    """
    ended_consents = [
        (draft.user_id, draft.kind)
        for draft in drafts
        if draft.user_id is not None and not draft.is_granted
    ]
    exclude_from_training(
        tenant_id=actor.tenant_id, user_ids=[user_id for user_id, _ in ended_consents]
    )
    for user_id, kind in ended_consents:
        if kind is ConsentKind.CONTENT_CAPTURE:
            request_content_erasure(
                actor=actor, user_id=user_id, reason=ContentErasureReason.WITHDRAWN, now=now
            )


def _require_user(actor: Actor) -> UserId:
    """Return the user ID of a signed-in user. Raises Forbidden."""
    actor.require(Permission.MANAGE_OWN_CONSENT)
    if actor.kind is not ActorKind.USER or actor.user_id is None:
        raise Forbidden(
            "Sign in to give or withdraw your own consent. You cannot do this with an API key."
        )
    return actor.user_id


def _check_choice(choice: ConsentChoice) -> None:
    """Check that the choice is possible, and that the user has read its texts.

    Raises InvalidValue.
    """
    if choice.consent.training and not choice.consent.content_capture:
        raise InvalidValue(
            "training", "Training uses only captured content. Consent to content capture, too."
        )
    for kind, current in USER_CONSENT_VERSIONS.items():
        if choice.consent.is_granted(kind):
            require_current_version(
                "consent_texts", accepted_versions=choice.consent_texts, current=current
            )


def _record_consent_change(
    actor: Actor, user_id: UserId, *, change: tuple[UserConsent, UserConsent], now: datetime
) -> None:
    before, after = change
    record_change(
        actor=actor,
        action="consent.changed",
        target=f"user:{user_id}",
        change=(_to_change_fields(before), _to_change_fields(after)),
        now=now,
    )


def _to_change_fields(consent: UserConsent) -> ChangeFields:
    return {"content_capture": consent.content_capture, "training": consent.training}
