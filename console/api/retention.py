"""Retention over REST: periods of data classes, legal holds, purges and deletion certificates."""

import datetime
import uuid
from typing import Annotated

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import AwareDatetime, Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from console.downloads.file_response import file_response
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention import operations, queries
from tenants.privacy.retention.operations import NewHold
from tenants.privacy.retention.queries import DataClassReport, HoldView, PurgePreview, RunView

router = Router(tags=["retention"])
_READ = document_permissions(Permission.READ_RETENTION)


class RetentionRunResponse(ResponseSchema):
    id: uuid.UUID
    data_class: DataClass
    days: int  # the retention period
    rule_version: int | None  # null: no rule was set yet
    cutoff: datetime.datetime  # older rows are deleted
    # Numbers of rows: opening + created - deleted = closing. `created`, `closing`, `held` and
    # `finished_at` are null while the purge is running or paused.
    # At the end of the previous purge. Without a previous purge, and for data that is also deleted
    # between purges (the retrieval index, idempotency records): at the beginning of this purge.
    opening: int
    created: int | None  # rows created since `opening` was counted
    deleted: int  # so far
    closing: int | None  # at the end
    held: int | None  # old enough to be deleted, but kept, for example by a legal hold
    began_at: datetime.datetime
    finished_at: datetime.datetime | None


class DataClassResponse(ResponseSchema):
    data_class: DataClass
    title: str
    purpose: str
    legal_basis: str
    surface: str  # where the data is stored, such as Postgres
    days: int  # the retention period in force
    default_days: int
    min_days: int
    max_days: int
    is_overridable: bool  # false: the period of this data class is fixed
    version: int  # of the tenant's rule; 0: no rule was ever set
    author_email: str | None  # of the rule; null: no rule, not a user, or an erased user
    reason: str  # of the rule
    records: int | None  # number of rows; null: the rows of this class are not counted by tenant
    oldest_at: datetime.datetime | None  # time of the oldest row; null: none, or not counted
    due: int  # number of rows that the next purge deletes; also 0 if rows are not counted
    # Number of rows that are old enough to be deleted, but kept, for example by a legal hold. It is
    # also 0 if rows are not counted.
    held: int
    overdue: int  # number of rows that should have been deleted by now; normally 0
    last_run: RetentionRunResponse | None  # null: no purge yet


class RetentionReportResponse(ResponseSchema):
    classes: list[DataClassResponse]
    generated_at: datetime.datetime


class RetentionDaysRequest(RequestSchema):
    days: Annotated[int, Field(ge=0, le=100_000)]  # each data class has its own, lower maximum


class SetDays(
    RetentionDaysRequest,
    json_schema_extra={"example": {"days": 120, "reason": "Contract, annex 2."}},
):
    reason: Annotated[str, Field(max_length=1_000)]
    # The version of the rule to replace. 0: no rule was ever set. Null: any version.
    expected_version: Annotated[int, Field(ge=0)] | None = None


class PurgePreviewResponse(ResponseSchema):
    days: int  # the retention period of the preview
    records: int  # number of all rows
    would_delete: int  # number of rows that the next purge would delete
    # Number of rows that are old enough to be deleted, but would be kept, for example by a legal
    # hold.
    would_hold: int
    oldest_at: datetime.datetime | None  # time of the oldest row; null: there are no rows


class RunList(PageResponse):
    items: Items[RetentionRunResponse]  # newest first


class LegalHoldResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    user_id: uuid.UUID | None  # null: data of all users
    # The hold covers data from `since` until `until`, exclusive. Null: unbounded.
    since: datetime.datetime | None
    until: datetime.datetime | None
    reason: str
    created_at: datetime.datetime
    released_at: datetime.datetime | None  # null: active


class HoldList(PageResponse):
    items: Items[LegalHoldResponse]  # newest first


_HOLD_EXAMPLE = {
    "name": "Hooli v. Pied Piper",
    "reason": "Letter of 3 May.",
    "since": "2026-01-01T00:00Z",
}


class PlaceHold(RequestSchema, json_schema_extra={"example": _HOLD_EXAMPLE}):
    # The name of the legal matter.
    name: Annotated[str, Field(min_length=1, max_length=operations.MAX_NAME_CHARS)]
    reason: Annotated[str, Field(max_length=1_000)]
    user_id: uuid.UUID | None = None  # null: data of all users
    # The hold covers data from `since` until `until`, exclusive. Null: unbounded.
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


class PlacedHold(ResponseSchema):
    id: uuid.UUID


class ReleaseHold(
    RequestSchema, json_schema_extra={"example": {"reason": "The matter is settled."}}
):
    reason: Annotated[str, Field(max_length=1_000)]


class ErasureCertificateResponse(ResponseSchema):
    id: uuid.UUID
    number: int  # starts at 1, without gaps
    created_at: datetime.datetime
    document: str  # signed canonical JSON, which `manage.py verify_certificate` verifies


class CertificateList(PageResponse):
    items: Items[ErasureCertificateResponse]  # newest first


@router.get(
    "",
    response=RetentionReportResponse,
    summary="Report which data is stored, for how long and why.",
    openapi_extra=_READ,
)
def list_all(request: AuthenticatedRequest) -> dict[str, object]:
    now = timezone.now()
    reports = queries.list_data_class_reports(actor=actor_of(request), now=now)
    return {"classes": [_to_response(report) for report in reports], "generated_at": now}


@router.get(
    "/runs", response=RunList, summary="List purges with their results.", openapi_extra=_READ
)
def list_runs(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[RunView]:
    return queries.list_runs(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get("/holds", response=HoldList, summary="List legal holds.", openapi_extra=_READ)
def list_holds(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[HoldView]:
    return queries.list_holds(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "/holds",
    response={201: PlacedHold},
    summary="Place a legal hold; the data that it covers is not purged.",
    openapi_extra=document_permissions(Permission.WRITE_LEGAL_HOLDS),
)
def place_hold(request: AuthenticatedRequest, body: PlaceHold) -> Status[object]:
    new = NewHold(**body.dict())
    hold_id = operations.place_hold(actor=actor_of(request), new=new, now=timezone.now())
    return Status(201, {"id": hold_id})


@router.post(
    "/holds/{hold_id}/release",
    response={204: None},
    summary="Release a legal hold.",
    openapi_extra=document_permissions(Permission.WRITE_LEGAL_HOLDS),
)
def release_hold(
    request: AuthenticatedRequest, hold_id: uuid.UUID, body: ReleaseHold
) -> Status[None]:
    operations.release_hold(
        actor=actor_of(request), hold_id=hold_id, reason=body.reason, now=timezone.now()
    )
    return Status(204, None)


@router.get(
    "/certificates",
    response=CertificateList,
    summary="List deletion certificates.",
    openapi_extra=_READ,
)
def list_certificates(
    request: AuthenticatedRequest, page: Query[PageQuery]
) -> Page[queries.CertificateView]:
    return queries.list_certificates(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.get(
    "/certificates/{certificate_id}",
    summary="Download a deletion certificate; it can be verified offline.",
    openapi_extra=_READ,
)
def get_certificate(request: AuthenticatedRequest, certificate_id: uuid.UUID) -> HttpResponse:
    certificate = queries.find_certificate(actor=actor_of(request), certificate_id=certificate_id)
    name = f"caret-deletion-certificate-{certificate.number}.json"
    return file_response(certificate.document, name=name, content_type="application/json")


@router.get(
    "/{data_class}/preview",
    response=PurgePreviewResponse,
    summary="Preview the rows that a retention period would delete.",
    # The conflict: the retention period of the data class is fixed.
    openapi_extra={**_READ, "responses": {409: {"$ref": "#/components/responses/Conflict"}}},
)
def preview(
    request: AuthenticatedRequest, data_class: DataClass, query: Query[RetentionDaysRequest]
) -> PurgePreview:
    return queries.preview_purge(
        actor=actor_of(request), data_class=data_class, days=query.days, now=timezone.now()
    )


@router.put(
    "/{data_class}",
    response=DataClassResponse,
    summary="Set the retention period of a data class; needs a reason.",
    openapi_extra=document_permissions(Permission.WRITE_RETENTION),
)
def put(request: AuthenticatedRequest, data_class: DataClass, body: SetDays) -> dict[str, object]:
    actor, now = actor_of(request), timezone.now()
    operations.set_rule(
        actor=actor,
        data_class=data_class,
        days=body.days,
        reason=body.reason,
        expected_version=body.expected_version,
        now=now,
    )
    reports = queries.list_data_class_reports(actor=actor, now=now)
    return _to_response(next(report for report in reports if report.data_class is data_class))


def _to_response(class_report: DataClassReport) -> dict[str, object]:
    terms, rule, counts = class_report.terms, class_report.rule, class_report.count
    return {
        "data_class": class_report.data_class,
        "title": terms.title,
        "purpose": terms.purpose,
        "legal_basis": terms.legal_basis,
        "surface": terms.surface,
        "days": rule.days,
        "default_days": terms.default_days,
        "min_days": terms.min_days,
        "max_days": terms.max_days,
        "is_overridable": terms.is_overridable,
        "version": rule.version or 0,
        "author_email": rule.author_email,
        "reason": rule.reason,
        "records": None if counts is None else counts.records,
        "oldest_at": None if counts is None else counts.oldest_at,
        "due": 0 if counts is None else counts.due,
        "held": 0 if counts is None else counts.held,
        "overdue": class_report.overdue,
        "last_run": class_report.last_run,
    }
