"""Audit sinks over REST: webhooks and syslog servers that receive the audit log."""

import uuid
from datetime import datetime
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import SAFE_TO_REPEAT
from console.api.pagination import Items, PageQuery, PageResponse
from console.limits.outbound_limit import OUTBOUND_LIMIT
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.endpoint import SinkKind
from tenants.compliance.audit_sinks.operations import (
    NewSink,
    TestResult,
    create_sink,
    delete_sink,
    probe_sink,
    replay_sink,
    retry_sink,
)
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks

router = Router(tags=["sinks"])
_MAX_SEQUENCE = 2**53 - 1  # the largest integer that JavaScript represents exactly


class SinkResponse(ResponseSchema):
    id: uuid.UUID
    kind: SinkKind
    name: str
    origin: str  # scheme, host and port of the sink's address
    created_at: datetime
    delivered_sequence: int  # delivery continues after the entry with this number
    num_waiting: int  # number of entries not delivered yet
    delivered_at: datetime | None  # time of the last delivery; null: nothing was delivered yet
    failed_since: datetime | None  # null: the last attempt succeeded, or there was none
    last_error: str  # "": no error in the last attempt
    num_failures: int  # since the last success
    next_attempt_at: datetime | None  # null: immediately


class SinkPage(PageResponse):
    items: Items[SinkResponse]  # newest first


class CreateSink(
    RequestSchema,
    json_schema_extra={"example": {"name": "Splunk", "address": "https://siem.example/hook"}},
):
    name: str  # 1 to 120 characters, unique among the tenant's sinks
    address: str  # https://..., or syslog+tls://host:port
    # The sequence number of the first entry to deliver. Null: only new entries.
    from_sequence: Annotated[int, Field(ge=1, le=_MAX_SEQUENCE)] | None = None


class CreatedSinkResponse(ResponseSchema):
    secret: str | None  # signs webhook messages; returned only once; null: a syslog sink
    sink: SinkResponse


class ReplaySink(RequestSchema, json_schema_extra={"example": {"from_sequence": 1}}):
    from_sequence: Annotated[int, Field(ge=1, le=_MAX_SEQUENCE)]


class SinkTestResult(ResponseSchema):
    delivered: bool
    error: str  # "": the message was delivered


@router.get(
    "",
    response=SinkPage,
    summary="List audit sinks with the state of their deliveries.",
    openapi_extra=document_permissions(Permission.READ_AUDIT),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[SinkView]:
    return list_sinks(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={201: CreatedSinkResponse},
    summary="Create an audit sink: a webhook or a syslog server.",
    openapi_extra=document_permissions(Permission.WRITE_AUDIT_SINKS),
)
def create(request: AuthenticatedRequest, body: CreateSink) -> Status[object]:
    new = NewSink(body.name, body.address, body.from_sequence)
    return Status(201, create_sink(actor=actor_of(request), new=new, now=timezone.now()))


@router.post(
    "/{sink_id}/test",
    response=SinkTestResult,
    summary="Send a test message to an audit sink and return the result.",
    openapi_extra=document_permissions(Permission.WRITE_AUDIT_SINKS) | SAFE_TO_REPEAT,
)
def test(request: AuthenticatedRequest, sink_id: uuid.UUID) -> TestResult:
    actor = actor_of(request)
    # Raises BulkheadFull if the tenant has too many outgoing requests.
    with OUTBOUND_LIMIT.acquire(actor.tenant_id):
        return probe_sink(actor=actor, sink_id=sink_id, clock=timezone.now)


@router.post(
    "/{sink_id}/replay",
    response=SinkResponse,
    summary="Deliver all entries again, starting with a sequence number.",
    openapi_extra=document_permissions(Permission.WRITE_AUDIT_SINKS),
)
def replay(request: AuthenticatedRequest, sink_id: uuid.UUID, body: ReplaySink) -> SinkView:
    return replay_sink(
        actor=actor_of(request),
        sink_id=sink_id,
        from_sequence=body.from_sequence,
        now=timezone.now(),
    )


@router.post(
    "/{sink_id}/retry",
    response=SinkResponse,
    summary="Retry a failing audit sink now instead of at its next attempt.",
    openapi_extra=document_permissions(Permission.WRITE_AUDIT_SINKS),
)
def retry(request: AuthenticatedRequest, sink_id: uuid.UUID) -> SinkView:
    return retry_sink(actor=actor_of(request), sink_id=sink_id, now=timezone.now())


@router.delete(
    "/{sink_id}",
    response={204: None},
    summary="Delete an audit sink; nothing more is delivered to it.",
    openapi_extra=document_permissions(Permission.WRITE_AUDIT_SINKS),
)
def delete(request: AuthenticatedRequest, sink_id: uuid.UUID) -> Status[None]:
    delete_sink(actor=actor_of(request), sink_id=sink_id, now=timezone.now())
    return Status(204, None)
