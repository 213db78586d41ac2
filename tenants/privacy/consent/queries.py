"""Queries of consents and of the receipts that prove them."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from caret.contracts.policy import TenantPolicy
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.models import ConsentReceipt, ContentErasure, Membership
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.consent import (
    ConsentStatement,
    UserConsent,
    compute_effective_consent,
    compute_user_consent,
    get_tenant_consent,
)
from tenants.privacy.consent.consent_texts import ConsentKind
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.erased_users import find_erased_users, get_visible_email


@dataclass(frozen=True, slots=True)
class OwnConsent:
    """The consent of the actor."""

    allowance: UserConsent  # the consent that the tenant allows
    consent: UserConsent  # the actor's consent, as far as the tenant allows it
    retention_days: int | None  # None: nothing is stored


@dataclass(frozen=True, slots=True)
class ActiveConsent:
    """A user's consent in force, with the times since which both user and tenant have consented."""

    content_capture_since: datetime
    training_since: datetime | None  # None: the user's content may not train models


@dataclass(frozen=True, slots=True)
class ConsentReceiptView:
    id: UUID
    user_id: UserId | None  # None: the tenant's own
    user_email: str | None  # None: the tenant's own, or an erased user
    kind: ConsentKind
    is_granted: bool
    wording: str  # version of the consent text
    wording_sha256: str  # of the text, in hex
    actor_email: str | None  # None: not a user, or an erased user
    policy_version: int | None  # None: not caused by a change of policy
    address: str | None  # the client's IP address; None: not a network request
    created_at: datetime


def get_own_consent(*, actor: Actor) -> OwnConsent:
    """Return the actor's consent. Two queries. Raises Forbidden."""
    user_id = _require_user(actor)
    with tenant_scope(actor.tenant_id):
        policy = load_active_policy(tenant_id=actor.tenant_id).content_capture
        statements = find_latest_statements(tenant_id=actor.tenant_id, user_id=user_id).get(
            user_id, []
        )
    allowance = get_tenant_consent(policy)
    return OwnConsent(
        allowance=allowance,
        consent=compute_effective_consent(compute_user_consent(statements), allowance),
        retention_days=policy.retention_days if policy and allowance.content_capture else None,
    )


def get_user_consent(*, actor: Actor, user_id: UserId) -> UserConsent:
    """Return the consent that a user has given, even if the tenant does not allow it.

    One query. Raises Forbidden.
    """
    actor.require(Permission.READ_CONSENT)
    with tenant_scope(actor.tenant_id):
        statements = find_latest_statements(tenant_id=actor.tenant_id, user_id=user_id)
    return compute_user_consent(statements.get(user_id, []))


def list_receipts(
    *, actor: Actor, limit: int, cursor: str | None, only_own: bool = False
) -> Page[ConsentReceiptView]:
    """Return a page of receipts, newest first: all of the tenant's, or the actor's own.

    Actors without READ_CONSENT get only their own. Raises Forbidden, InvalidValue.
    """
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        receipts = ConsentReceipt.objects.filter(tenant_id=actor.tenant_id)
        if only_own or not actor.has_permission(Permission.READ_CONSENT):
            receipts = receipts.filter(user_id=_require_user(actor))
        rows = fetch_page_rows(receipts.select_related("user", "actor"), limit=limit, after=after)
        people = [person for row in rows for person in (row.user_id, row.actor_id)]
        erased_ids = find_erased_users(actor.tenant_id, people)
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, lambda row: _to_receipt_view(row, erased_ids))


@dataclass(frozen=True, slots=True)
class ConsentOverview:
    """The consent of a tenant, and the numbers of members whose consent is in force."""

    allowance: UserConsent  # the consent that the tenant allows
    # Version of the text that the tenant has consented to. None: the policy has no content capture.
    wording: str | None
    retention_days: int | None  # None: the policy has no content capture
    num_members: int
    num_content_capture: int  # members with consent to content capture
    num_training: int  # members with consent to content capture and training
    receipt: ConsentReceiptView | None  # the tenant's own last receipt; None: it has none


@dataclass(frozen=True, slots=True)
class ContentErasureView:
    """An erasure of captured content, with its reason, extent and progress."""

    id: UUID
    user_id: UserId | None  # None: several users (reasons RETENTION and UNFINISHED)
    user_email: str | None  # None: several users, or an erased user
    reason: str  # tenants.privacy.content_capture.erasure.ContentErasureReason
    num_items: int  # captured completions, and texts of suggestions after users changed them
    num_bytes: int  # size of the encrypted objects
    num_keys: int  # destroyed encryption keys
    requested_at: datetime  # if keys were destroyed, the content is unreadable since then
    finished_at: datetime | None  # None: objects are still being deleted


def get_consent_overview(*, actor: Actor) -> ConsentOverview:
    """Return the consent overview. Up to six queries. Raises Forbidden."""
    actor.require(Permission.READ_CONSENT)
    with tenant_scope(actor.tenant_id):
        policy = load_active_policy(tenant_id=actor.tenant_id)
        consents = find_all_effective_consents(tenant_id=actor.tenant_id, policy=policy).values()
        num_members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at=None).count()
        tenant_receipts = ConsentReceipt.objects.filter(
            tenant_id=actor.tenant_id, user_id__isnull=True
        )
        row = tenant_receipts.select_related("actor", "user").order_by("-number").first()
        erased_ids = find_erased_users(actor.tenant_id, [] if row is None else [row.actor_id])
    content_capture = policy.content_capture
    return ConsentOverview(
        allowance=get_tenant_consent(content_capture),
        wording=None if content_capture is None else content_capture.consent_text,
        retention_days=None if content_capture is None else content_capture.retention_days,
        num_members=num_members,
        num_content_capture=len(consents),
        num_training=sum(consent.training for consent in consents),
        receipt=None if row is None else _to_receipt_view(row, erased_ids),
    )


def find_effective_consents(
    *, actor: Actor, user_ids: Collection[UserId]
) -> dict[UserId, UserConsent]:
    """Return the consents of the users as far as the tenant allows them.

    Users without effective consent to content capture are left out. Two queries. Raises Forbidden.
    """
    actor.require(Permission.READ_CONSENT)
    with tenant_scope(actor.tenant_id):
        allowance = get_tenant_consent(
            load_active_policy(tenant_id=actor.tenant_id).content_capture
        )
        rows = ConsentReceipt.objects.filter(
            tenant_id=actor.tenant_id, user_id__in=[UUID(user_id) for user_id in user_ids]
        )
        statements = _find_statements_by_user(rows)
    consents = {
        user_id: compute_effective_consent(compute_user_consent(user_statements), allowance)
        for user_id, user_statements in statements.items()
    }
    return {user_id: consent for user_id, consent in consents.items() if consent.content_capture}


def list_content_erasures(
    *, actor: Actor, limit: int, cursor: str | None
) -> Page[ContentErasureView]:
    """Return a page of content erasures, newest first. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_CONSENT)
    with tenant_scope(actor.tenant_id):
        erasures = ContentErasure.objects.filter(tenant_id=actor.tenant_id).select_related("user")
        after = decode_cursor(cursor)
        rows = fetch_page_rows(erasures, limit=limit, after=after, time_field="requested_at")
        erased_ids = find_erased_users(actor.tenant_id, [row.user_id for row in rows])
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.requested_at, row.id)
    )
    return map_page(page, lambda row: _to_content_erasure_view(row, erased_ids))


def _to_content_erasure_view(
    row: ContentErasure, erased_ids: frozenset[UUID]
) -> ContentErasureView:
    return ContentErasureView(
        id=row.id,
        user_id=None if row.user_id is None else UserId(str(row.user_id)),
        user_email=get_visible_email(row.user, erased_ids),
        reason=row.reason,
        num_items=row.num_items,
        num_bytes=row.num_bytes,
        num_keys=len(row.keys),
        requested_at=row.requested_at,
        finished_at=row.finished_at,
    )


def find_users_with_possible_content(*, tenant_id: TenantId, policy: TenantPolicy) -> set[UserId]:
    """Return the members whose stored content is not to be erased. Checks no permission.

    Their last statement about content capture is a yes. A yes to an earlier text counts, too: the
    content that was stored under that text stays. Returns an empty set if the tenant's policy
    contains no content capture.
    """
    if policy.content_capture is None:
        return set()
    statements = find_latest_statements(tenant_id=tenant_id)
    return {
        user_id
        for user_id in _list_member_ids(tenant_id)
        if any(
            statement.kind is ConsentKind.CONTENT_CAPTURE and statement.is_granted
            for statement in statements.get(user_id, ())
        )
    }


def find_latest_statements(
    *, tenant_id: TenantId, user_id: UserId | None = None
) -> dict[UserId, list[ConsentStatement]]:
    """Return each user's last statement of each kind. One query.

    If `user_id` is given, return only this user's statements. Must run inside the tenant's scope.
    """
    rows = ConsentReceipt.objects.filter(tenant_id=tenant_id, user_id__isnull=False)
    return _find_statements_by_user(rows if user_id is None else rows.filter(user_id=user_id))


def _find_statements_by_user(
    receipts: QuerySet[ConsentReceipt],
) -> dict[UserId, list[ConsentStatement]]:
    """Return each user's last statement of each kind. One query."""
    statements_by_user = defaultdict[UserId, list[ConsentStatement]](list)
    for row in receipts.order_by("user_id", "kind", "-number").distinct("user_id", "kind"):
        statement = ConsentStatement(
            kind=ConsentKind(row.kind), is_granted=row.is_granted, wording=row.wording
        )
        statements_by_user[UserId(str(row.user_id))].append(statement)
    return statements_by_user


def find_active_consent(
    *, tenant_id: TenantId, user_id: UserId, policy: TenantPolicy
) -> ActiveConsent | None:
    """Return a member's consent in force. Checks no permission.

    None: no content may be stored, or the user is not a member. Must run inside the tenant's scope.
    No query if the tenant allows nothing, otherwise at most three.
    """
    allowance = get_tenant_consent(policy.content_capture)
    members = Membership.objects.filter(tenant_id=tenant_id, user_id=user_id, ended_at=None)
    if not allowance.content_capture or not members.exists():
        return None
    receipts = ConsentReceipt.objects.filter(tenant_id=tenant_id)
    user_receipts = _find_last_receipts(receipts.filter(user_id=user_id))
    tenant_receipts = _find_last_receipts(receipts.filter(user_id__isnull=True))
    statements = [
        ConsentStatement(ConsentKind(row.kind), row.is_granted, row.wording)
        for row in user_receipts.values()
    ]
    consent = compute_effective_consent(compute_user_consent(statements), allowance)
    if not consent.content_capture:
        return None
    # Both the user and the tenant must have consented, so the later receipt counts.
    since = {
        kind: max(
            row.created_at
            for row in (user_receipts.get(kind), tenant_receipts.get(kind))
            if row is not None
        )
        for kind in ConsentKind
        if consent.is_granted(kind)
    }
    return ActiveConsent(since[ConsentKind.CONTENT_CAPTURE], since.get(ConsentKind.TRAINING))


def _find_last_receipts(rows: QuerySet[ConsentReceipt]) -> dict[str, ConsentReceipt]:
    """Return the last receipt of each kind. One query.

    `rows` are the receipts of one user, or the tenant's own.
    """
    newest = rows.order_by("user_id", "kind", "-number").distinct("user_id", "kind")
    return {row.kind: row for row in newest}


def find_all_effective_consents(
    *, tenant_id: TenantId, policy: TenantPolicy
) -> dict[UserId, UserConsent]:
    """Return the consents of all members as far as the tenant allows them.

    Members without effective consent to content capture are left out. Checks no permission. Must
    run inside the tenant's scope. No query if the tenant allows nothing, otherwise two.
    """
    allowance = get_tenant_consent(policy.content_capture)
    if not allowance.content_capture:
        return {}
    members = _list_member_ids(tenant_id)
    consents = {
        user_id: compute_effective_consent(compute_user_consent(statements), allowance)
        for user_id, statements in find_latest_statements(tenant_id=tenant_id).items()
        if user_id in members
    }
    return {user_id: consent for user_id, consent in consents.items() if consent.content_capture}


def _list_member_ids(tenant_id: TenantId) -> set[UserId]:
    rows = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
    return {UserId(str(user_id)) for user_id in rows.values_list("user_id", flat=True)}


def _require_user(actor: Actor) -> UserId:
    """Return the actor's user ID. Raises Forbidden."""
    actor.require(Permission.MANAGE_OWN_CONSENT)
    if actor.user_id is None:
        raise Forbidden("Only users can give consent.")
    return actor.user_id


def _to_receipt_view(row: ConsentReceipt, erased_ids: Collection[UUID]) -> ConsentReceiptView:
    return ConsentReceiptView(
        id=row.id,
        user_id=None if row.user_id is None else UserId(str(row.user_id)),
        user_email=None if row.user is None or row.user_id in erased_ids else row.user.email,
        kind=ConsentKind(row.kind),
        is_granted=row.is_granted,
        wording=row.wording,
        wording_sha256=row.wording_sha256,
        actor_email=None if row.actor is None or row.actor_id in erased_ids else row.actor.email,
        policy_version=row.policy_version,
        address=row.address,
        created_at=row.created_at,
    )
