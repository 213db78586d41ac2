"""Operations that request and cancel exports, and create signed URLs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Sum

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.compliance.exports.definitions.definitions import EXPORTS, PACK, PACK_MEDIA
from tenants.compliance.exports.formats.text import FORMATS
from tenants.compliance.exports.jobs.progress import ExportProgress, serialize_members
from tenants.compliance.exports.jobs.queries import (
    ExportView,
    find_job_row,
    require_can_read_export,
    to_export_view,
)
from tenants.compliance.exports.jobs.signed_urls import SignedUrl, SignedUrlToken, sign_url
from tenants.compliance.exports.jobs.state_machine import (
    UNDER_WAY,
    InvalidTransition,
    JobEvent,
    JobState,
    advance,
)
from tenants.compliance.exports.row_stream import require_period
from tenants.compliance.exports.rows import Period, RowQuery
from tenants.models import ExportJob, Tenant
from tenants.security.audit.operations import record_change, record_read
from tenants.security.authorization.actor import Actor, build_system_actor

# Limits of each tenant.
MAX_UNDER_WAY: Final = 10  # jobs that are queued or running
MAX_STORED: Final = 100  # finished jobs whose file is stored
MAX_STORED_BYTES: Final = 20 * 1024**3  # of these files
LINK_FOR: Final = timedelta(minutes=10)  # the validity of a signed URL


@dataclass(frozen=True, slots=True)
class ExportRequest:
    definition: str  # the name of an export, or PACK
    media: str  # a name in FORMATS, or PACK_MEDIA
    period: Period


def request_export(*, actor: Actor, export_request: ExportRequest, now: datetime) -> ExportView:
    """Request an export. Raises Forbidden, InvalidValue, and Conflict if a limit is reached."""
    _require_known(export_request)
    require_can_read_export(actor, export_request.definition)
    require_period(export_request.period)
    with tenant_scope(actor.tenant_id):
        # Concurrent requests wait here, so that together they do not exceed the limits.
        Tenant.objects.select_for_update(no_key=True).get(id=actor.tenant_id)
        _require_room(actor)
        return to_export_view(_insert_job(actor, export_request, now))


def request_final_export(
    *, tenant_id: TenantId, export_request: ExportRequest, now: datetime
) -> UUID:
    """Request the final export of a closing tenant, and return its ID.

    The limits of other exports do not apply. The file is kept at least until the tenant is closed.
    """
    with tenant_scope(tenant_id):
        return _insert_job(build_system_actor(tenant_id), export_request, now).id


def _insert_job(actor: Actor, export_request: ExportRequest, now: datetime) -> ExportJob:
    row = ExportJob.objects.create(
        tenant_id=actor.tenant_id,
        definition=export_request.definition,
        media=export_request.media,
        since=export_request.period.start,
        until=export_request.period.end,
        requested_by_id=actor.user_id,
        requested_by_key=actor.key or "",
        state=JobState.QUEUED,
        error="",
        created_at=now,
        members=serialize_members(_list_members(export_request)),
        rows_expected=_estimate_rows(actor, export_request, now),
        name="",
        proof="",
    )
    record_change(
        actor=actor,
        action="export.requested",
        target=f"export:{row.id}",
        change=(None, _to_change_fields(export_request)),
        now=now,
    )
    return row


def cancel_export(*, actor: Actor, export_id: UUID, now: datetime) -> ExportView:
    """Cancel an export. The next clean-up deletes the parts and pieces that were stored.

    Raises Forbidden, NotFound, Conflict.
    """
    with tenant_scope(actor.tenant_id):
        row = find_job_row(actor, export_id)
        before = JobState(row.state)
        try:
            state = advance(before, JobEvent.CANCEL)
        except InvalidTransition as error:
            raise Conflict("The export is already {state}.", state=before) from error
        unchanged_job = ExportJob.objects.filter(
            tenant_id=actor.tenant_id, id=export_id, state=before
        )
        if not unchanged_job.update(state=state, finished_at=now):
            raise Conflict("The export has changed. Reload and try again.")
        row.refresh_from_db()
        record_change(
            actor=actor,
            action="export.cancelled",
            target=f"export:{export_id}",
            change=({"state": before.value}, {"state": state.value}),
            now=now,
        )
    return to_export_view(row)


def create_signed_url(*, actor: Actor, export_id: UUID, now: datetime) -> SignedUrlToken:
    """Create a URL for the file that is valid for LINK_FOR, while the actor may read the export.

    Raises Forbidden, NotFound, Conflict.
    """
    with tenant_scope(actor.tenant_id):
        row = find_job_row(actor, export_id)
        state = JobState(row.state)
        if state is JobState.FINISHED and (row.expires_at is None or row.expires_at <= now):
            state = JobState.EXPIRED  # the next clean-up stores it
        if state is not JobState.FINISHED or row.expires_at is None:
            raise Conflict("The export has no file, because its status is “{state}”.", state=state)
        expires_at = min(now + LINK_FOR, row.expires_at)
        record_read(actor=actor, action="export.link_given", target=f"export:{export_id}", now=now)
    link = SignedUrl(actor.tenant_id, export_id, expires_at, actor.user_id, actor.key)
    return SignedUrlToken(sign_url(link), expires_at)


def _require_known(export_request: ExportRequest) -> None:
    """Check that the definition and the format exist. Raises InvalidValue."""
    names = (*EXPORTS, PACK)
    if export_request.definition not in names:
        raise InvalidValue("definition", "Enter one of {choices}.", choices=", ".join(names))
    media = (PACK_MEDIA,) if export_request.definition == PACK else tuple(FORMATS)
    if export_request.media not in media:
        raise InvalidValue("format", "Enter one of {choices}.", choices=", ".join(media))


def _require_room(actor: Actor) -> None:
    """Check the limits of the tenant. Raises Conflict."""
    rows = ExportJob.objects.filter(tenant_id=actor.tenant_id)
    if rows.filter(state__in=UNDER_WAY).count() >= MAX_UNDER_WAY:
        raise Conflict(
            "You already have {most} exports in progress. Wait, or cancel one.", most=MAX_UNDER_WAY
        )
    finished_jobs = rows.filter(state=JobState.FINISHED)
    num_bytes = finished_jobs.aggregate(sum=Sum("num_bytes"))["sum"] or 0
    if finished_jobs.count() >= MAX_STORED or num_bytes >= MAX_STORED_BYTES:
        raise Conflict(
            "You have reached the limit of stored exports. Each export is deleted after a week."
        )


def _list_members(export_request: ExportRequest) -> list[ExportProgress]:
    names = tuple(EXPORTS) if export_request.definition == PACK else (export_request.definition,)
    return [ExportProgress(name, EXPORTS[name].version) for name in names]


def _estimate_rows(actor: Actor, export_request: ExportRequest, now: datetime) -> int | None:
    if export_request.definition == PACK:
        return None
    return EXPORTS[export_request.definition].source.count(
        RowQuery(actor, export_request.period, now)
    )


def _to_change_fields(
    export_request: ExportRequest,
) -> dict[str, str | int | dict[str, object] | None]:
    return {
        "definition": export_request.definition,
        "format": export_request.media,
        "start": export_request.period.start.isoformat(),
        "end": export_request.period.end.isoformat(),
    }
