"""Queries of the audit log: filtered pages for people, chain ranges for exports and sinks."""

import re
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.pagination import (
    MAX_PAGE,
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.base.validation.text import validate_text
from tenants.base.validation.time_bounds import validate_datetime
from tenants.models import AuditEntry, AuditHead
from tenants.security.audit.hash_chain import GENESIS, format_timestamp
from tenants.security.audit.operations import ChangeFields, record_read
from tenants.security.authorization.actor import Actor, ActorKind
from tenants.security.authorization.erased_users import find_erased_users

_BATCH: Final = 200  # entries in one query of `read_range`
_SEQUENCE_LIMIT: Final = 2**63  # sequence numbers are less than this
# An Actor.credential_name: the lookup ID of an API key, or another credential, for example
# scim:0f3a9c2b71de, operator:ola or operator:key:3Fq81xZb. An operator's handle contains only
# letters and digits (tenants/fleet/operators/accounts.py).
_CREDENTIAL_NAME: Final = re.compile(r"[0-9A-Za-z]{8}|[a-z]+:(key:)?[0-9A-Za-z]+")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit entries. None: the field is not filtered."""

    action: str | None = None  # or a prefix: "team.*"
    actor: str | None = None  # a user's ID, an Actor.credential_name, or "platform"
    target: str | None = None  # or a prefix: "team:*"
    since: datetime | None = None
    until: datetime | None = None  # exclusive


@dataclass(frozen=True, slots=True)
class AuditEntryView:
    sequence: int
    id: uuid.UUID
    at: datetime
    actor_kind: ActorKind
    actor_id: uuid.UUID | None  # None: the actor is not a user
    actor_email: str | None  # None also: the user was erased in this tenant
    actor_key: str | None  # Actor.credential_name; None: a user's session, or the platform
    action: str
    target: str
    before: Any
    after: Any
    address: str | None  # the client's IP address; None: not a network request
    request_id: str  # "" outside HTTP
    reason: str  # "": no reason was given
    previous_hash: str  # hex
    hash: str  # hex


@dataclass(frozen=True, slots=True)
class ChainHead:
    sequence: int  # 0: the chain is empty
    hash: bytes


def list_entries(
    *, actor: Actor, audit_filter: AuditFilter, limit: int, cursor: str | None, now: datetime
) -> Page[AuditEntryView]:
    """Return a page of entries, the newest of the chain first. Records an entry for the read.

    Raises Forbidden, InvalidValue.
    """
    with tenant_scope(actor.tenant_id):
        page = fetch_entries(actor=actor, audit_filter=audit_filter, limit=limit, cursor=cursor)
        record_read(
            actor=actor,
            action="audit.read",
            target="audit",
            filters=_to_change_fields(audit_filter),
            now=now,
        )
    return page


def fetch_entries(
    *, actor: Actor, audit_filter: AuditFilter, limit: int, cursor: str | None
) -> Page[AuditEntryView]:
    """Return a page of entries without recording the read.

    Their order is that of the chain, because clocks can be set back. For callers that read several
    pages and record one read. Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_AUDIT)
    assert 1 <= limit <= MAX_PAGE
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        entries = _filter_entries(actor, audit_filter).select_related("actor")
        if after is not None:
            entries = entries.filter(sequence__lt=_find_sequence(actor.tenant_id, after))
        rows = list(entries.order_by("-sequence")[: limit + 1])
        erased_ids = find_erased_users(actor.tenant_id, [row.actor_id for row in rows])
    page = build_page(rows, limit=limit, get_position=_to_position)
    return map_page(page, lambda row: _to_view(row, erased_ids))


def find_head(*, tenant_id: TenantId) -> ChainHead:
    """Return the tenant's chain head. Must run inside the tenant's scope."""
    row = AuditHead.objects.filter(tenant_id=tenant_id).order_by("tenant_id").first()
    return ChainHead(0, GENESIS) if row is None else ChainHead(row.sequence, bytes(row.hash))


def read_range(*, tenant_id: TenantId, first: int, last: int) -> Iterator[AuditEntry]:
    """Yield entries in the order of the chain, from `first` to `last`, both included.

    Must run outside any tenant's scope. Loads a small batch at a time. No transaction is open
    between the batches, because committed entries never change.
    """
    while first <= last:
        with tenant_scope(tenant_id):
            batch = list(
                AuditEntry.objects.filter(
                    tenant_id=tenant_id, sequence__gte=first, sequence__lte=last
                ).order_by("sequence")[:_BATCH]
            )
        if not batch:
            return
        yield from batch
        first = batch[-1].sequence + 1


def filter_period(
    entries: QuerySet[AuditEntry], since: datetime | None, until: datetime | None
) -> QuerySet[AuditEntry]:
    """Return the entries of a half-open period. None: unbounded on that side."""
    if since is not None:
        entries = entries.filter(at__gte=since)
    return entries if until is None else entries.filter(at__lt=until)


def _to_position(row: AuditEntry) -> PagePosition:
    """Return the position of an entry for cursors. The position's ID is the sequence number."""
    return PagePosition(row.at, uuid.UUID(int=row.sequence))


def _find_sequence(tenant_id: TenantId, position: PagePosition) -> int:
    """Return the sequence number of the entry at a position of a cursor. Raises InvalidValue."""
    if position.id.int < _SEQUENCE_LIMIT:
        return position.id.int
    # A cursor of an earlier release has the entry's ID. An export that began before the upgrade
    # continues with it.
    try:
        return AuditEntry.objects.get(tenant_id=tenant_id, id=position.id).sequence
    except AuditEntry.DoesNotExist as error:
        raise InvalidValue(
            "cursor", "The cursor is invalid. Use a cursor from a previous page."
        ) from error


def _filter_entries(actor: Actor, audit_filter: AuditFilter) -> QuerySet[AuditEntry]:
    for name in ("action", "target"):
        validate_text(name, getattr(audit_filter, name) or "")
    validate_datetime("since", audit_filter.since)
    validate_datetime("until", audit_filter.until)
    entries = AuditEntry.objects.filter(tenant_id=actor.tenant_id)
    entries = entries.filter(
        **_make_text_filter("action", audit_filter.action),
        **_make_text_filter("target", audit_filter.target),
    )
    if audit_filter.actor is not None:
        entries = entries.filter(**_make_actor_filter(audit_filter.actor))
    return filter_period(entries, audit_filter.since, audit_filter.until)


def _make_text_filter(name: str, text: str | None) -> dict[str, str]:
    """Return the filter for a field: its text, or a prefix that ends with "*"."""
    if text is None:
        return {}
    if text.endswith("*"):
        return {f"{name}__startswith": text.removesuffix("*")}
    return {name: text}


def _make_actor_filter(text: str) -> dict[str, Any]:
    """Return the filter for an actor. Raises InvalidValue."""
    if text == ActorKind.PLATFORM:
        return {"actor_kind": ActorKind.PLATFORM}
    if _CREDENTIAL_NAME.fullmatch(text):
        return {"actor_key": text}
    try:
        return {"actor_id": uuid.UUID(text)}
    except ValueError as error:
        raise InvalidValue(
            "actor",
            "Enter a user ID, the lookup ID of an API key, or an actor as the audit log names it, "
            'such as "operator:HANDLE" or "platform".',
        ) from error


def _to_change_fields(audit_filter: AuditFilter) -> ChangeFields:
    values = {field.name: getattr(audit_filter, field.name) for field in fields(audit_filter)}
    return {
        name: format_timestamp(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None
    }


def _to_view(row: AuditEntry, erased_ids: Collection[uuid.UUID]) -> AuditEntryView:
    return AuditEntryView(
        sequence=row.sequence,
        id=row.id,
        at=row.at,
        actor_kind=ActorKind(row.actor_kind),
        actor_id=row.actor_id,
        actor_email=None if row.actor is None or row.actor_id in erased_ids else row.actor.email,
        actor_key=row.actor_key or None,
        action=row.action,
        target=row.target,
        before=row.before,
        after=row.after,
        address=row.address,
        request_id=row.request_id,
        reason=row.reason,
        previous_hash=bytes(row.previous_hash).hex(),
        hash=bytes(row.hash).hex(),
    )
