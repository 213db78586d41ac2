"""Reads consents: who has agreed to what, and by which receipts."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from caret.contracts.policy import TenantPolicy
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenancy import tenant
from tenants.errors import Forbidden
from tenants.members.actor import Actor
from tenants.members.erased import erased_among
from tenants.members.permissions import Permission
from tenants.models import ConsentReceipt, Membership
from tenants.paging import Page, Place, first_of, mapped, page_of, read_cursor
from tenants.policies.queries import find_policy
from tenants.telemetry.consent import Consent, Said, allowance, allowed, consent_of
from tenants.telemetry.wordings import Kind


@dataclass(frozen=True, slots=True)
class OwnConsent:
    """Of whoever asks."""

    allowance: Consent  # what the tenant lets him agree to
    given: Consent  # what he has agreed to, and is allowed
    retention_days: int | None  # None: nothing is kept


@dataclass(frozen=True, slots=True)
class Standing:
    """Of a user who has agreed, and may: since when both he and his tenant have."""

    telemetry_since: datetime
    training_since: datetime | None  # None: nothing of his may train models


@dataclass(frozen=True, slots=True)
class Receipt:
    id: UUID
    user_id: UserId | None  # None: the tenant's own
    user_email: str | None
    kind: Kind
    is_given: bool
    wording: str
    wording_sha256: str
    actor_email: str | None  # None: the platform's operator
    policy_version: int | None  # None: not by a policy
    address: str | None
    created_at: datetime


def get_own_consent(*, actor: Actor) -> OwnConsent:
    """Raises Forbidden. Three queries."""
    own = _own(actor)
    with tenant(actor.tenant_id):
        policy = find_policy(tenant_id=actor.tenant_id).policy.telemetry
        said = find_said(tenant_id=actor.tenant_id, user_id=own).get(own, [])
    lets = allowance(policy)
    return OwnConsent(
        allowance=lets,
        given=allowed(consent_of(said), lets),
        retention_days=policy.retention_days if policy and lets.telemetry else None,
    )


def list_receipts(*, actor: Actor, limit: int, cursor: str | None) -> Page[Receipt]:
    """All of the tenant's, or for those who may not see them, their own; newest first. Raises
    Forbidden, Invalid."""
    after = read_cursor(cursor)
    with tenant(actor.tenant_id):
        found = ConsentReceipt.objects.filter(tenant_id=actor.tenant_id)
        if not actor.may(Permission.READ_CONSENT):
            found = found.filter(user_id=_own(actor))
        rows = first_of(found.select_related("user", "actor"), limit=limit, after=after)
        people = [person for row in rows for person in (row.user_id, row.actor_id)]
        erased = erased_among(actor.tenant_id, people)
    page = page_of(rows, limit=limit, place=lambda row: Place(row.created_at, row.id))
    return mapped(page, lambda row: _receipt(row, erased))


def find_holders(*, tenant_id: TenantId, policy: TenantPolicy) -> set[UserId]:
    """Members whose content may stay where it is: they have said yes, if only to an earlier
    wording, and have not taken it back. For the platform itself, likewise."""
    if policy.telemetry is None:
        return set()
    said = find_said(tenant_id=tenant_id)
    return {
        user_id
        for user_id in _members(tenant_id)
        if any(each.kind is Kind.TELEMETRY and each.is_given for each in said.get(user_id, ()))
    }


def find_said(*, tenant_id: TenantId, user_id: UserId | None = None) -> dict[UserId, list[Said]]:
    """What each user, or this one, has said last of each kind. Inside the tenant's scope; one
    query."""
    rows = ConsentReceipt.objects.filter(tenant_id=tenant_id, user_id__isnull=False)
    chosen = rows if user_id is None else rows.filter(user_id=user_id)
    found = defaultdict[UserId, list[Said]](list)
    for row in chosen.order_by("user_id", "kind", "-number").distinct("user_id", "kind"):
        said = Said(kind=Kind(row.kind), is_given=row.is_given, wording=row.wording)
        found[UserId(str(row.user_id))].append(said)
    return found


def find_standing(*, tenant_id: TenantId, user_id: UserId, policy: TenantPolicy) -> Standing | None:
    """Of one member; None: nothing of him may be kept. For the platform itself: asks no role.
    Inside the tenant's scope; no query where the tenant allows nothing, else three."""
    lets = allowance(policy.telemetry)
    members = Membership.objects.filter(tenant_id=tenant_id, user_id=user_id, ended_at=None)
    if not lets.telemetry or not members.exists():
        return None
    receipts = ConsentReceipt.objects.filter(tenant_id=tenant_id)
    own, tenants = (
        _last(receipts.filter(user_id=user_id)),
        _last(receipts.filter(user_id__isnull=True)),
    )
    said = [Said(Kind(row.kind), row.is_given, row.wording) for row in own.values()]
    consent = allowed(consent_of(said), lets)
    if not consent.telemetry:
        return None
    since = {
        kind: max(row.created_at for row in (own.get(kind), tenants.get(kind)) if row is not None)
        for kind in Kind
        if consent.of(kind)
    }
    return Standing(since[Kind.TELEMETRY], since.get(Kind.TRAINING))


def _last(rows: QuerySet[ConsentReceipt]) -> dict[str, ConsentReceipt]:
    """By kind what was said last. A query."""
    newest = rows.order_by("user_id", "kind", "-number").distinct("user_id", "kind")
    return {row.kind: row for row in newest}


def find_consents(*, tenant_id: TenantId, policy: TenantPolicy) -> dict[UserId, Consent]:
    """Of all members whose consent to telemetry counts under this policy. For the platform itself:
    asks no role. Inside the tenant's scope; no query where the tenant allows nothing, else two."""
    lets = allowance(policy.telemetry)
    if not lets.telemetry:
        return {}
    members = _members(tenant_id)
    consents = {
        user_id: allowed(consent_of(said), lets)
        for user_id, said in find_said(tenant_id=tenant_id).items()
        if user_id in members
    }
    return {user_id: consent for user_id, consent in consents.items() if consent.telemetry}


def _members(tenant_id: TenantId) -> set[UserId]:
    rows = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
    return {UserId(str(user_id)) for user_id in rows.values_list("user_id", flat=True)}


def _own(actor: Actor) -> UserId:
    """Raises Forbidden."""
    actor.require(Permission.OWN_CONSENT)
    if actor.user_id is None:
        raise Forbidden("Only users have a consent of their own.")
    return actor.user_id


def _receipt(row: ConsentReceipt, erased: Collection[UUID]) -> Receipt:
    return Receipt(
        id=row.id,
        user_id=None if row.user_id is None else UserId(str(row.user_id)),
        user_email=None if row.user is None or row.user_id in erased else row.user.email,
        kind=Kind(row.kind),
        is_given=row.is_given,
        wording=row.wording,
        wording_sha256=row.wording_sha256,
        actor_email=None if row.actor is None or row.actor_id in erased else row.actor.email,
        policy_version=row.policy_version,
        address=row.address,
        created_at=row.created_at,
    )
