"""What is held about one person, over REST, and that it goes."""

import datetime
import uuid
from typing import IO, Annotated

import redis
from django.http import StreamingHttpResponse
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from caret.foundation.ids import UserId
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.openapi import DONE_ANEW
from console.api.pagination import PageAnswer, Paged
from console.api.problems import UNAVAILABLE, ProblemRaised
from console.api.temp_file_response import made_file
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.export_bundle import Asked, Bounds, own_id, write_bundle
from tenants.compliance.data_subjects.operations import Demand, demand_erasure
from tenants.compliance.data_subjects.queries import ErasureView, list_erasures

router = Router(tags=["data subjects"])
# Some seconds of work, and mostly 10 MB; who has left more behind is the operator's command's.
BOUNDS = Bounds(max_rows=100_000, max_bytes=256 << 20)


class Why(Body, json_schema_extra={"example": {"reason": "Request under article 15, 3 May."}}):
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


@router.post(
    "/me/bundle",
    summary="All that is held about you here: NDJSON in a ZIP, with a signed manifest.",
    openapi_extra=open_to(Permission.OWN_SUBJECT) | DONE_ANEW,
)
def own_bundle(request: ApiRequest) -> StreamingHttpResponse:
    return _bundle(request, Asked(own_id(actor_of(request)), "", BOUNDS))


@router.post(
    "/{user_id}/bundle",
    summary="All that is held about a member, past or present: a ZIP, with a reason.",
    openapi_extra=open_to(Permission.EXPORT_SUBJECTS) | DONE_ANEW,
)
def bundle(request: ApiRequest, user_id: uuid.UUID, asked: Why) -> StreamingHttpResponse:
    return _bundle(request, Asked(UserId(str(user_id)), asked.reason, BOUNDS))


class Demanded(Answer):
    id: uuid.UUID


class Erasure(Answer):
    id: uuid.UUID
    user_id: uuid.UUID | None  # null: all of the tenant
    reason: str
    rows: dict[str, int]  # that went so far, by table
    held_by: list[uuid.UUID]  # legal holds that kept something, as of its end
    requested_at: datetime.datetime
    finished_at: datetime.datetime | None  # null: under way


class ErasureList(PageAnswer):
    rows: list[Erasure]  # newest first


@router.post(
    "/{user_id}/erasure",
    response={202: Demanded},
    summary="Erase a member, past or present: his keys at once, all else within minutes.",
    openapi_extra=open_to(Permission.ERASE_SUBJECTS),
)
def erase(request: ApiRequest, user_id: uuid.UUID, asked: Why) -> Status[object]:
    demand = Demand(UserId(str(user_id)), asked.reason)
    erasure_id = demand_erasure(actor=actor_of(request), demand=demand, now=timezone.now())
    return Status(202, {"id": erasure_id})


@router.get(
    "/erasures",
    response=ErasureList,
    summary="Erasures, and how far they are; their certificates are among those of retention.",
    openapi_extra=open_to(Permission.READ_RETENTION),
)
def erasures(request: ApiRequest, page: Query[Paged]) -> Page[ErasureView]:
    return list_erasures(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


def _bundle(request: ApiRequest, asked: Asked) -> StreamingHttpResponse:
    """Raises ProblemRaised, and as write_bundle."""
    actor = actor_of(request)

    def write(out: IO[bytes]) -> None:
        write_bundle(actor=actor, asked=asked, out=out, now=timezone.now())

    name = f"caret-data-subject-{asked.user_id}.zip"
    try:
        return made_file(request, write, name=name, content_type="application/zip")
    except redis.RedisError as error:
        raise ProblemRaised(UNAVAILABLE) from error
