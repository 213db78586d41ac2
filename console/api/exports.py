"""Exports over REST: request, list, cancel and download them."""

import datetime
import uuid
from typing import Annotated, Any, Final, Literal

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import AwareDatetime, Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from console.downloads.file_response import file_response
from tenants.base.errors import Conflict
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.exports.jobs import operations, queries
from tenants.compliance.exports.jobs.operations import ExportRequest
from tenants.compliance.exports.jobs.queries import DefinitionView, ExportView
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.compliance.exports.rows import Period

router = Router(tags=["exports"])
# Each export also needs the permission to read its rows.
_PERMISSION: Final = document_permissions(Permission.EXPORT)
_EXAMPLE: Final = {
    "definition": "usage_days",
    "format": "csv",
    "since": "2026-10-01T00:00:00Z",
    "until": "2026-11-01T00:00:00Z",
}


class ExportDefinition(ResponseSchema):
    name: str
    version: int
    title: str
    is_of_period: bool  # false: it ignores the period and contains the current state
    columns: list[str]  # empty for an evidence pack, which consists of files


class DefinitionList(ResponseSchema):
    items: Items[ExportDefinition]  # only definitions that the caller may export


class ExportResponse(ResponseSchema):
    id: uuid.UUID
    definition: str
    format: Annotated[str, Field(alias="media")]  # ExportView calls it `media`
    since: datetime.datetime
    until: datetime.datetime  # exclusive
    state: JobState
    error: str  # "": the export has not failed
    rows_done: int
    rows_expected: int | None  # null: not known yet
    created_at: datetime.datetime
    finished_at: datetime.datetime | None  # null: not finished
    expires_at: datetime.datetime | None  # when the file is deleted; null: no file yet
    name: str  # of the file; "": no file yet
    num_bytes: int  # 0: no file yet


class ExportList(PageResponse):
    items: Items[ExportResponse]  # newest first


class RequestExport(RequestSchema, json_schema_extra={"example": _EXAMPLE}):
    definition: Annotated[str, Field(max_length=60)]
    format: Literal["csv", "ndjson", "parquet", "xlsx", "zip"] = "csv"  # zip: evidence packs only
    since: AwareDatetime
    until: AwareDatetime  # exclusive


class SignedUrlResponse(ResponseSchema):
    url: str  # begins with the public address of the console
    path: str  # the URL without this public address
    expires_at: datetime.datetime


@router.get(
    "/definitions",
    response=DefinitionList,
    summary="List exportable data.",
    openapi_extra=_PERMISSION,
)
def definitions(request: AuthenticatedRequest) -> dict[str, list[DefinitionView]]:
    return {"items": queries.list_definitions(actor=actor_of(request))}


@router.get(
    "", response=ExportList, summary="List exports and their progress.", openapi_extra=_PERMISSION
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[ExportView]:
    return queries.list_exports(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={202: ExportResponse},
    summary="Request an export; it is built in the background.",
    openapi_extra=_PERMISSION,
)
def create(request: AuthenticatedRequest, body: RequestExport) -> Status[ExportView]:
    export_request = ExportRequest(body.definition, body.format, Period(body.since, body.until))
    job = operations.request_export(
        actor=actor_of(request), export_request=export_request, now=timezone.now()
    )
    return Status(202, job)


@router.get(
    "/{export_id}", response=ExportResponse, summary="Get an export.", openapi_extra=_PERMISSION
)
def get(request: AuthenticatedRequest, export_id: uuid.UUID) -> ExportView:
    return queries.find_export(actor=actor_of(request), export_id=export_id)


@router.get(
    "/{export_id}/proof",
    response={200: None},
    summary="Download the signed proof of a finished export, to store with its file.",
    openapi_extra=_PERMISSION,
)
def proof(request: AuthenticatedRequest, export_id: uuid.UUID) -> Any:
    job = queries.find_export(actor=actor_of(request), export_id=export_id)
    if not job.proof:
        raise Conflict("The export has no proof, because its status is “{state}”.", state=job.state)
    name = f"{job.name}.proof.json"
    return file_response(job.proof, name=name, content_type="application/json")


@router.post(
    "/{export_id}/link",
    response={201: SignedUrlResponse},
    summary="Create a link to the file; anybody with the link can use it for ten minutes.",
    openapi_extra=_PERMISSION,
)
def link(request: AuthenticatedRequest, export_id: uuid.UUID) -> Status[dict[str, object]]:
    signed_url = operations.create_signed_url(
        actor=actor_of(request), export_id=export_id, now=timezone.now()
    )
    path = reverse("console:export-file", args=[signed_url.token])
    url = f"{settings.CONSOLE_URL}{path}"
    return Status(201, {"url": url, "path": path, "expires_at": signed_url.expires_at})


@router.post(
    "/{export_id}/cancel",
    response=ExportResponse,
    summary="Cancel an export that is not finished.",
    openapi_extra=_PERMISSION,
)
def cancel(request: AuthenticatedRequest, export_id: uuid.UUID) -> ExportView:
    return operations.cancel_export(
        actor=actor_of(request), export_id=export_id, now=timezone.now()
    )
