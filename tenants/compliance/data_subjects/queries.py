"""Queries of users by e-mail address or ID, and of erasures."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.models import Erasure, Membership
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_user


def find_user_id(text: str) -> UserId:
    """Return the ID of a user by e-mail address or ID. Raises NotFound for an unknown address.

    An ID is returned without a look-up.
    """
    try:
        return UserId(str(uuid.UUID(text)))
    except ValueError:
        user_id = find_user(email=text)
    if user_id is None:
        raise NotFound("No user has this e-mail address.")
    return user_id


@dataclass(frozen=True, slots=True)
class ErasureView:
    id: uuid.UUID
    user_id: uuid.UUID | None  # None: the whole tenant
    reason: str
    rows: dict[str, int]  # numbers of rows erased so far, by table; objects under "objects"
    legal_hold_ids: list[uuid.UUID]  # holds that kept rows when the erasure finished
    requested_at: datetime
    finished_at: datetime | None  # None: not finished


@dataclass(frozen=True, slots=True)
class PersonView:
    """A current or former member."""

    user_id: UserId
    email: str
    name: str
    role: str
    since: datetime  # the beginning of the membership
    ended_at: datetime | None  # None: a current member
    erased_at: datetime | None  # None: not erased
    erasure_id: uuid.UUID | None  # the erasure in progress; None: none


def find_data_subject(*, actor: Actor, text: str) -> PersonView:
    """Return a current or former member by e-mail address or ID. Raises Forbidden, NotFound."""
    # Either permission is enough.
    if not actor.has_permission(Permission.EXPORT_DATA_SUBJECTS):
        actor.require(Permission.ERASE_DATA_SUBJECTS)
    with tenant_scope(actor.tenant_id):
        rows = Membership.objects.filter(tenant_id=actor.tenant_id).select_related("user")
        try:
            row = rows.filter(user_id=uuid.UUID(text)).order_by("user_id").first()
        except ValueError:
            email = text.strip().lower()
            row = rows.filter(user__email=email).order_by("user_id").first()
        if row is None:
            raise NotFound("There is no current or former member with this address or ID.")
        user_id = UserId(str(row.user_id))
        erasure_id = find_unfinished_erasure(tenant_id=actor.tenant_id, user_id=user_id)
    return PersonView(
        user_id=user_id,
        email=row.user.email,
        name=row.user.name,
        role=row.role,
        since=row.created_at,
        ended_at=row.ended_at,
        erased_at=row.erased_at,
        erasure_id=erasure_id,
    )


def find_unfinished_erasure(*, tenant_id: TenantId, user_id: UserId | None) -> uuid.UUID | None:
    """Return a user's erasure in progress; `user_id` None: the whole tenant's erasure."""
    with tenant_scope(tenant_id):
        rows = Erasure.objects.filter(tenant_id=tenant_id, user_id=user_id, finished_at=None)
        return rows.order_by("id").values_list("id", flat=True).first()


def list_erasures(*, actor: Actor, limit: int, cursor: str | None) -> Page[ErasureView]:
    """Return a page of erasures, newest first. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_RETENTION)
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        erasures = Erasure.objects.filter(tenant_id=actor.tenant_id)
        rows = fetch_page_rows(erasures, limit=limit, after=after, time_field="requested_at")
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.requested_at, row.id)
    )
    return map_page(page, _to_view)


def _to_view(row: Erasure) -> ErasureView:
    return ErasureView(
        id=row.id,
        user_id=row.user_id,
        reason=row.reason,
        rows=row.counts,
        legal_hold_ids=[uuid.UUID(hold) for hold in row.legal_hold_ids],
        requested_at=row.requested_at,
        finished_at=row.finished_at,
    )
