"""Queries of sinks and their health."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

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
from tenants.compliance.audit_sinks.endpoint import SinkKind
from tenants.models import AuditSink
from tenants.security.audit.queries import find_head
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class SinkView:
    id: UUID
    kind: SinkKind
    name: str
    origin: str  # the address's scheme, host and port
    created_at: datetime
    delivered_sequence: int  # of the newest delivered entry; later entries are delivered next
    num_waiting: int  # number of entries after `delivered_sequence`
    delivered_at: datetime | None  # None: nothing delivered yet
    failed_since: datetime | None  # None: the last attempt succeeded, or there was none
    last_error: str  # "": no error in the last attempt
    num_failures: int  # since the last delivered entry
    next_attempt_at: datetime | None  # None: immediately


def list_sinks(*, actor: Actor, limit: int, cursor: str | None) -> Page[SinkView]:
    """Return a page of sinks, newest first. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_AUDIT)
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        sinks = AuditSink.objects.filter(tenant_id=actor.tenant_id)
        rows = fetch_page_rows(sinks, limit=limit, after=after)
        last = find_head(tenant_id=actor.tenant_id).sequence
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, lambda row: build_sink_view(row, last))


def get_sink(*, actor: Actor, sink_id: UUID) -> SinkView:
    """Return one sink. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_AUDIT)
    with tenant_scope(actor.tenant_id):
        row = find_sink(actor=actor, sink_id=sink_id)
        return build_sink_view(row, find_head(tenant_id=actor.tenant_id).sequence)


def find_sink(*, actor: Actor, sink_id: UUID) -> AuditSink:
    """Return a sink's row. Must run inside the tenant's scope. Raises NotFound."""
    try:
        return AuditSink.objects.get(tenant_id=actor.tenant_id, id=sink_id)
    except AuditSink.DoesNotExist as error:
        raise NotFound("This sink does not exist.") from error


def build_sink_view(row: AuditSink, last_sequence: int) -> SinkView:
    """Build the view. `last_sequence` is the sequence of the tenant's newest audit entry."""
    return SinkView(
        id=row.id,
        kind=SinkKind(row.kind),
        name=row.name,
        origin=row.origin,
        created_at=row.created_at,
        delivered_sequence=row.delivered_sequence,
        num_waiting=max(0, last_sequence - row.delivered_sequence),
        delivered_at=row.delivered_at,
        failed_since=row.failed_since,
        last_error=row.last_error,
        num_failures=row.num_failures,
        next_attempt_at=row.next_attempt_at,
    )
