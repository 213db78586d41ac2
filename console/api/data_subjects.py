"""Data subject requests over REST: export and erasure of one person's data."""

import datetime
import uuid
from typing import IO, Annotated

import redis
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from caret.foundation.ids import UserId
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import SAFE_TO_REPEAT
from console.api.pagination import Items, PageQuery, PageResponse
from console.api.problems import UNAVAILABLE, ProblemRaised
from console.downloads.temp_file_response import temp_file_response
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.export_bundle import (
    BundleLimits,
    BundleRequest,
    require_own_user_id,
    write_bundle,
)
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.compliance.data_subjects.queries import ErasureView, list_erasures
from tenants.security.authorization.actor import Actor

router = Router(tags=["data subjects"])
# Writing 100,000 rows takes a few seconds, and their ZIP usually has 10 MB. Operators export larger
# bundles with `manage.py export_data_subject`.
BUNDLE_LIMITS = BundleLimits(max_rows=100_000, max_bytes=256 << 20)  # 256 MiB


class ReasonBody(
    RequestSchema, json_schema_extra={"example": {"reason": "Request under article 15, 3 May."}}
):
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


@router.post(
    "/me/bundle",
    summary="Download all data about you: NDJSON files in a ZIP with a signed manifest.",
    openapi_extra=document_permissions(Permission.EXPORT_OR_ERASE_OWN_DATA) | SAFE_TO_REPEAT,
)
def own_bundle(request: AuthenticatedRequest) -> StreamingHttpResponse:
    user_id = require_own_user_id(actor_of(request))
    return _api_bundle_response(request, BundleRequest(user_id, reason="", limits=BUNDLE_LIMITS))


@router.post(
    "/{user_id}/bundle",
    summary="Download all data about a current or former member as a ZIP; needs a reason.",
    openapi_extra=document_permissions(Permission.EXPORT_DATA_SUBJECTS) | SAFE_TO_REPEAT,
)
def bundle(
    request: AuthenticatedRequest, user_id: uuid.UUID, body: ReasonBody
) -> StreamingHttpResponse:
    bundle_request = BundleRequest(UserId(str(user_id)), body.reason, BUNDLE_LIMITS)
    return _api_bundle_response(request, bundle_request)


class ErasureRequested(ResponseSchema):
    id: uuid.UUID


class ErasureResponse(ResponseSchema):
    id: uuid.UUID
    user_id: uuid.UUID | None  # null: the whole tenant
    reason: str
    rows: dict[str, int]  # number of rows erased so far, by table
    # The legal holds that kept rows from erasure. Empty until the erasure ends.
    legal_hold_ids: list[uuid.UUID]
    requested_at: datetime.datetime
    finished_at: datetime.datetime | None  # null: in progress


class ErasureList(PageResponse):
    items: Items[ErasureResponse]  # newest first


@router.post(
    "/{user_id}/erasure",
    response={202: ErasureRequested},
    summary="Erase a current or former member: encryption keys at once, data within minutes.",
    openapi_extra=document_permissions(Permission.ERASE_DATA_SUBJECTS),
)
def erase(request: AuthenticatedRequest, user_id: uuid.UUID, body: ReasonBody) -> Status[object]:
    erasure_request = ErasureRequest(UserId(str(user_id)), body.reason)
    erasure_id = request_user_erasure(
        actor=actor_of(request), erasure_request=erasure_request, now=timezone.now()
    )
    return Status(202, {"id": erasure_id})


@router.get(
    "/erasures",
    response=ErasureList,
    summary="List erasures and their progress; certificates are listed under retention.",
    openapi_extra=document_permissions(Permission.READ_RETENTION),
)
def erasures(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[ErasureView]:
    return list_erasures(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


def _api_bundle_response(
    request: AuthenticatedRequest, bundle_request: BundleRequest
) -> StreamingHttpResponse:
    """Return the ZIP as a download. Raises ProblemRaised if Redis is unavailable.

    write_bundle needs Redis for its lock: a tenant creates one bundle at a time. The other errors
    are those of bundle_response.
    """
    try:
        return bundle_response(request, actor_of(request), bundle_request)
    except redis.RedisError as error:
        raise ProblemRaised(UNAVAILABLE) from error


def bundle_response(
    request: HttpRequest, actor: Actor, bundle_request: BundleRequest
) -> StreamingHttpResponse:
    """Return the ZIP as a download. Raises OSError and the errors of write_bundle."""

    def write(out: IO[bytes]) -> None:
        write_bundle(actor=actor, bundle_request=bundle_request, out=out, now=timezone.now())

    name = f"caret-data-subject-{bundle_request.user_id}.zip"
    return temp_file_response(request, write, name=name, content_type="application/zip")
