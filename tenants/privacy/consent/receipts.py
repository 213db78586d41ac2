"""Writes consent receipts: one for each yes or no that changes something."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from caret.contracts.policy import ContentCapturePolicy
from caret.foundation.ids import UserId
from tenants.models import ConsentReceipt
from tenants.privacy.consent.consent import ConsentStatement, UserConsent, is_current_yes
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    ConsentKind,
    get_consent_text,
)
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ReceiptDraft:
    """A receipt that is not numbered and stored yet."""

    user_id: UserId | None  # None: the tenant's own
    kind: ConsentKind
    is_granted: bool

    @property
    def wording(self) -> str:
        """The version of the current consent text."""
        return TENANT_CONSENT_VERSION if self.user_id is None else USER_CONSENT_VERSIONS[self.kind]


@dataclass(frozen=True, slots=True)
class _ReceiptContext:
    """The data that receipts written together share."""

    actor: Actor
    now: datetime
    policy_version: int | None  # None: not caused by a change of policy


def write_receipts(
    drafts: list[ReceiptDraft], *, actor: Actor, now: datetime, policy_version: int | None = None
) -> None:
    """Write receipts. Must run inside the tenant's scope.

    Call this in the transaction that changes the consent. The tenant's row must be locked, so that
    receipts are numbered in the order of commits.
    """
    receipts = ConsentReceipt.objects.filter(tenant_id=actor.tenant_id)
    first_number = (receipts.aggregate(last=Max("number"))["last"] or 0) + 1
    context = _ReceiptContext(actor, now, policy_version)
    ConsentReceipt.objects.bulk_create(
        _build_receipt(draft, number=number, context=context)
        for number, draft in enumerate(drafts, start=first_number)
    )


def draft_receipts_of_choice(
    user_id: UserId, statements: Iterable[ConsentStatement], consent: UserConsent
) -> list[ReceiptDraft]:
    """Return a receipt for each kind of consent that the user's choice changes.

    `statements` are from the user's receipts, oldest first. A no also ends a yes to an earlier
    text. Otherwise that yes would count again if the earlier text became current again.
    """
    last = {statement.kind: statement for statement in statements}
    return [
        ReceiptDraft(user_id, kind, is_granted=consent.is_granted(kind))
        for kind in ConsentKind
        if _is_change(consent.is_granted(kind), last.get(kind))
    ]


def _is_change(is_granted: bool, statement: ConsentStatement | None) -> bool:
    """Return whether a yes or no differs from the user's last statement of its kind."""
    if is_granted:
        return not is_current_yes(statement)
    return statement is not None and statement.is_granted


def draft_receipts_of_policy(
    before: ContentCapturePolicy | None, after: ContentCapturePolicy | None
) -> list[ReceiptDraft]:
    """Return a tenant's receipts for each kind of consent that its policy newly allows or ends.

    Allowed kinds also get a receipt if the policy names another version of the consent text.
    """
    has_other_wording = _read_wording(before) != _read_wording(after)
    drafts = []
    for kind in ConsentKind:
        is_granted = _is_allowed(after, kind)
        is_changed = is_granted != _is_allowed(before, kind)
        if is_changed or (is_granted and has_other_wording):
            drafts.append(ReceiptDraft(None, kind, is_granted=is_granted))
    return drafts


def _is_allowed(policy: ContentCapturePolicy | None, kind: ConsentKind) -> bool:
    return policy is not None and (kind is ConsentKind.CONTENT_CAPTURE or policy.training)


def _read_wording(policy: ContentCapturePolicy | None) -> str | None:
    """Return the version of the consent text that the policy names; None: no content capture."""
    return None if policy is None else policy.consent_text


def _build_receipt(draft: ReceiptDraft, *, number: int, context: _ReceiptContext) -> ConsentReceipt:
    actor = context.actor
    return ConsentReceipt(
        tenant_id=actor.tenant_id,
        number=number,
        user_id=draft.user_id,
        kind=draft.kind,
        is_granted=draft.is_granted,
        wording=draft.wording,
        wording_sha256=get_consent_text(draft.wording).sha256,
        actor_id=actor.user_id,
        policy_version=context.policy_version,
        address=actor.address,
        request_id=actor.request_id,
        created_at=context.now,
    )
