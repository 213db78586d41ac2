"""Reads the audit trail: pages for people, ranges of the chain for what proves and pushes it."""

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
    Page,
    PagePosition,
    build_page,
    fetch_first,
    map_page,
    read_cursor,
)
from tenants.base.permissions import Permission
from tenants.base.text_validation import validate_text
from tenants.base.time_bounds import validate_datetime
from tenants.models import AuditEntry, AuditHead
from tenants.security.audit.hash_chain import GENESIS, timestamp
from tenants.security.audit.operations import ChangeFields, record_read
from tenants.security.authorization.actor import Actor, ActorKind
from tenants.security.authorization.erased_users import find_erased_users

_BATCH: Final = 200
# An API key's lookup id, or by what else something was done: scim:0f3a9c2b71de, operator:ola.
_KEY: Final = re.compile(r"[0-9A-Za-z]{8}|[a-z]+:[0-9A-Za-z]+")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; None: no matter which."""

    action: str | None = None
    actor: str | None = None  # a user's id, a key's, or "platform"
    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # the first moment that is not asked for


@dataclass(frozen=True, slots=True)
class AuditEntryView:
    sequence: int
    id: uuid.UUID
    at: datetime
    actor_kind: ActorKind
    actor_id: uuid.UUID | None  # None: not a person
    actor_email: str | None  # None also: he was erased here
    actor_key: str | None  # None: no key was used
    action: str
    target: str
    before: Any
    after: Any
    address: str | None
    request_id: str
    reason: str
    previous_hash: str
    hash: str


@dataclass(frozen=True, slots=True)
class ChainHead:
    sequence: int  # 0: there is no entry
    hash: bytes


def list_entries(
    *, actor: Actor, asked: AuditFilter, limit: int, cursor: str | None, now: datetime
) -> Page[AuditEntryView]:
    """Newest first, as clocks had it. That somebody looked becomes an entry, too.

    Raises Forbidden, Invalid.
    """
    with tenant_scope(actor.tenant_id):
        page = fetch_entries(actor=actor, asked=asked, limit=limit, cursor=cursor)
        record_read(actor=actor, action="audit.read", target="audit", asked=_told(asked), now=now)
    return page


def fetch_entries(
    *, actor: Actor, asked: AuditFilter, limit: int, cursor: str | None
) -> Page[AuditEntryView]:
    """For who leaves an entry of his own, once for all pages. Raises Forbidden, Invalid."""
    actor.require(Permission.READ_AUDIT)
    after = read_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        found = _matching(actor, asked).select_related("actor")
        rows = fetch_first(found, limit=limit, after=after, time_field="at")
        erased = find_erased_users(actor.tenant_id, [row.actor_id for row in rows])
    page = build_page(rows, limit=limit, place=lambda row: PagePosition(row.at, row.id))
    return map_page(page, lambda row: _view(row, erased))


def find_head(*, tenant_id: TenantId) -> ChainHead:
    """Must run inside the tenant's scope."""
    row = AuditHead.objects.filter(tenant_id=tenant_id).order_by("tenant_id").first()
    return ChainHead(0, GENESIS) if row is None else ChainHead(row.sequence, bytes(row.hash))


def read_range(*, tenant_id: TenantId, first: int, last: int) -> Iterator[AuditEntry]:
    """In the order of the chain, both ends included; outside any scope. Holds a few at a time, and
    no transaction in between: what has been committed stays as it is."""
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


def in_period(
    entries: QuerySet[AuditEntry], since: datetime | None, until: datetime | None
) -> QuerySet[AuditEntry]:
    if since is not None:
        entries = entries.filter(at__gte=since)
    return entries if until is None else entries.filter(at__lt=until)


def _matching(actor: Actor, asked: AuditFilter) -> QuerySet[AuditEntry]:
    for name in ("action", "target"):
        validate_text(name, getattr(asked, name) or "")
    validate_datetime("since", asked.since)
    validate_datetime("until", asked.until)
    entries = AuditEntry.objects.filter(tenant_id=actor.tenant_id)
    if asked.action is not None:
        entries = entries.filter(action=asked.action)
    if asked.target is not None:
        entries = entries.filter(target=asked.target)
    if asked.actor is not None:
        entries = entries.filter(**_of_actor(asked.actor))
    return in_period(entries, asked.since, asked.until)


def _of_actor(text: str) -> dict[str, Any]:
    """Raises Invalid."""
    if text == ActorKind.PLATFORM:
        return {"actor_kind": ActorKind.PLATFORM}
    if _KEY.fullmatch(text):
        return {"actor_key": text}
    try:
        return {"actor_id": uuid.UUID(text)}
    except ValueError as error:
        raise InvalidValue("actor", 'Enter a user ID, a key ID or "platform".') from error


def _told(asked: AuditFilter) -> ChangeFields:
    values = {each.name: getattr(asked, each.name) for each in fields(asked)}
    return {
        name: timestamp(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None
    }


def _view(row: AuditEntry, erased: Collection[uuid.UUID]) -> AuditEntryView:
    return AuditEntryView(
        sequence=row.sequence,
        id=row.id,
        at=row.at,
        actor_kind=ActorKind(row.actor_kind),
        actor_id=row.actor_id,
        actor_email=None if row.actor is None or row.actor_id in erased else row.actor.email,
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
