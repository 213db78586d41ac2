"""Queries of the export jobs whose rows the actor may read."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext_noop

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
from tenants.compliance.exports.definitions.definitions import EXPORTS, PACK, PACK_VERSION
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.models import ExportJob
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ExportView:
    """An export job."""

    id: UUID
    definition: str  # the name of an export, or PACK
    media: str  # csv, ndjson, parquet, xlsx, zip
    since: datetime
    until: datetime
    state: JobState
    error: str  # the reason of a failed job; otherwise ""
    rows_done: int  # rows that were read
    rows_expected: int | None  # None: unknown
    created_at: datetime
    finished_at: datetime | None  # the end of the job, also if it failed; None: in progress
    expires_at: datetime | None  # None: no file yet
    name: str  # of the file; "": no file yet
    num_bytes: int
    proof: str  # the signed proof; "": no proof yet


@dataclass(frozen=True, slots=True)
class DefinitionView:
    """An export that can be requested."""

    name: str
    version: int
    title: str  # English; the console translates it
    is_of_period: bool  # False: the state at the time of reading
    columns: list[str]  # empty for the evidence pack


def list_export_permissions(definition: str) -> frozenset[Permission]:
    """Return the permissions that an export requires besides Permission.EXPORT."""
    if definition == PACK:
        return frozenset(export.permission for export in EXPORTS.values())
    return frozenset({EXPORTS[definition].permission})


def can_read_export(actor: Actor, definition: str) -> bool:
    """Return whether the actor may read the rows; False if this release has no such definition."""
    return definition in (*EXPORTS, PACK) and all(
        map(actor.has_permission, list_export_permissions(definition))
    )


def require_can_read_export(actor: Actor, definition: str) -> None:
    """Check the permissions of an export. Raises Forbidden."""
    actor.require(Permission.EXPORT)
    for permission in sorted(list_export_permissions(definition)):
        actor.require(permission)


def list_definitions(*, actor: Actor) -> list[DefinitionView]:
    """Return the exports that the actor may request. Raises Forbidden."""
    actor.require(Permission.EXPORT)
    definitions = [
        DefinitionView(
            definition.name,
            definition.version,
            definition.title,
            definition.is_of_period,
            [column.name for column in definition.columns],
        )
        for definition in EXPORTS.values()
        if can_read_export(actor, definition.name)
    ]
    title = gettext_noop("Evidence pack (all exports in one file)")
    pack = DefinitionView(PACK, PACK_VERSION, title, is_of_period=True, columns=[])
    return [*definitions, pack] if can_read_export(actor, PACK) else definitions


def list_exports(*, actor: Actor, limit: int, cursor: str | None) -> Page[ExportView]:
    """Return a page of jobs that the actor may read, newest first.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.EXPORT)
    after = decode_cursor(cursor)
    names = [name for name in (*EXPORTS, PACK) if can_read_export(actor, name)]
    with tenant_scope(actor.tenant_id):
        jobs = ExportJob.objects.filter(tenant_id=actor.tenant_id, definition__in=names)
        rows = fetch_page_rows(jobs, limit=limit, after=after)
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, to_export_view)


def find_export(*, actor: Actor, export_id: UUID) -> ExportView:
    """Return one job. Raises Forbidden, NotFound."""
    with tenant_scope(actor.tenant_id):
        return to_export_view(find_job_row(actor, export_id))


def find_job_row(actor: Actor, export_id: UUID) -> ExportJob:
    """Return a job's row. Must run inside the tenant's scope. Raises Forbidden, NotFound."""
    actor.require(Permission.EXPORT)
    jobs = ExportJob.objects.filter(tenant_id=actor.tenant_id, id=export_id)
    row = jobs.order_by("id").first()
    if row is None or not can_read_export(actor, row.definition):
        raise NotFound("This export does not exist.")
    return row


def to_export_view(row: ExportJob) -> ExportView:
    return ExportView(
        id=row.id,
        definition=row.definition,
        media=row.media,
        since=row.since,
        until=row.until,
        state=JobState(row.state),
        error=row.error,
        rows_done=row.rows_done,
        rows_expected=row.rows_expected,
        created_at=row.created_at,
        finished_at=row.finished_at,
        expires_at=row.expires_at,
        name=row.name,
        num_bytes=row.num_bytes,
        proof=row.proof,
    )
