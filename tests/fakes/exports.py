"""Exports of a company, requested and built as the worker does."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.operations import ExportRequest, request_export
from tenants.compliance.exports.jobs.queries import ExportView, find_export
from tenants.compliance.exports.jobs.run import run_slice_of_oldest_job
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobState
from tenants.compliance.exports.rows import Period
from tenants.models import ExportJob
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import Company

OCTOBER: Final = Period(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC))


def start_export(
    company: Company,
    definition: str = "usage_days",
    media: str = "csv",
    *,
    period: Period = OCTOBER,
    actor: Actor | None = None,
) -> uuid.UUID:
    export_request = ExportRequest(definition, media, period)
    actor = actor or company.administrator.actor
    return request_export(actor=actor, export_request=export_request, now=timezone.now()).id


def build_exports(company: Company) -> None:
    """Run the company's export jobs until none of them can continue."""
    while run_slice_of_oldest_job(company.tenant_id, timezone.now):
        pass


def view_export(company: Company, export_id: uuid.UUID) -> ExportView:
    return find_export(actor=company.administrator.actor, export_id=export_id)


def file_of(company: Company, export_id: uuid.UUID) -> bytes:
    """Return the file that a download would deliver."""
    object_ids = sealed_objects.list_object_ids(company.tenant_id, export_id, pack_index=None)
    return b"".join(
        sealed_objects.read_object(company.tenant_id, export_id, object_id)
        for object_id in object_ids
    )


def make_export(company: Company) -> str:
    """Make a finished export, after ending those of earlier tests."""
    end_all_exports(company)
    export_id = start_export(company)
    build_exports(company)
    return str(export_id)


def end_all_exports(company: Company) -> None:
    """End all exports of the company, so that it may request a new one."""
    with tenant_scope(company.tenant_id):
        rows = ExportJob.objects.filter(tenant_id=company.tenant_id)
        rows.filter(state__in=UNDER_WAY).update(state=JobState.CANCELLED)
        rows.filter(state=JobState.FINISHED).update(expires_at=timezone.now() - timedelta(days=1))
