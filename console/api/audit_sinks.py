"""Where the audit trail is pushed to, over REST."""

import uuid
from datetime import datetime
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.openapi import DONE_ANEW
from console.api.pagination import PageAnswer, Paged
from console.outbound_limit import OUTWARD
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.endpoint import SinkKind
from tenants.compliance.audit_sinks.operations import (
    NewSink,
    Tried,
    create_sink,
    delete_sink,
    replay_sink,
    retry_sink,
    try_sink,
)
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks

router = Router(tags=["sinks"])
_MAX_SEQUENCE = 2**53 - 1


class Sink(Answer):
    id: uuid.UUID
    kind: SinkKind
    name: str
    origin: str  # scheme, host and port of its address
    created_at: datetime
    delivered_sequence: int  # of the last entry that it has
    num_waiting: int  # entries that it has not got yet
    delivered_at: datetime | None  # null: nothing was delivered yet
    failed_since: datetime | None  # null: the last attempt went well
    last_error: str  # "": the last attempt went well
    num_failures: int  # since it last went well
    next_attempt_at: datetime | None  # null: at once


class SinkPage(PageAnswer):
    rows: list[Sink]  # newest first


class CreateSink(
    Body,
    json_schema_extra={"example": {"name": "Splunk", "address": "https://siem.example/hook"}},
):
    name: str  # 1 to 120 characters, one sink's only
    address: str  # https://..., or syslog+tls://host:port
    # The first entry that it gets. Null: what comes from now on.
    from_sequence: Annotated[int, Field(ge=1, le=_MAX_SEQUENCE)] | None = None


class CreatedSink(Answer):
    secret: str | None  # signs the webhook's messages; shown this once; null: syslog has none
    sink: Sink


class ReplaySink(Body, json_schema_extra={"example": {"from_sequence": 1}}):
    from_sequence: Annotated[int, Field(ge=1, le=_MAX_SEQUENCE)]


class TriedSink(Answer):
    delivered: bool
    error: str  # "": it went well


@router.get(
    "",
    response=SinkPage,
    summary="List where the audit trail is pushed to, and how that goes.",
    openapi_extra=open_to(Permission.READ_AUDIT),
)
def list_all(request: ApiRequest, page: Query[Paged]) -> Page[SinkView]:
    return list_sinks(actor=actor_of(request), limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={201: CreatedSink},
    summary="Push the audit trail to a webhook or a syslog server.",
    openapi_extra=open_to(Permission.PUSH_AUDIT),
)
def create(request: ApiRequest, asked: CreateSink) -> Status[object]:
    new = NewSink(asked.name, asked.address, asked.from_sequence)
    return Status(201, create_sink(actor=actor_of(request), new=new, now=timezone.now()))


@router.post(
    "/{sink_id}/test",
    response=TriedSink,
    summary="Send a message that is no entry, and say what came of it.",
    openapi_extra=open_to(Permission.PUSH_AUDIT) | DONE_ANEW,
)
def test(request: ApiRequest, sink_id: uuid.UUID) -> Tried:
    actor = actor_of(request)
    with OUTWARD.taken(actor.tenant_id):
        return try_sink(actor=actor, sink_id=sink_id, clock=timezone.now)


@router.post(
    "/{sink_id}/replay",
    response=Sink,
    summary="Push the entries from a number on once more.",
    openapi_extra=open_to(Permission.PUSH_AUDIT),
)
def replay(request: ApiRequest, sink_id: uuid.UUID, asked: ReplaySink) -> SinkView:
    return replay_sink(
        actor=actor_of(request),
        sink_id=sink_id,
        from_sequence=asked.from_sequence,
        now=timezone.now(),
    )


@router.post(
    "/{sink_id}/retry",
    response=Sink,
    summary="Try a sink that fails at once, instead of at its next attempt.",
    openapi_extra=open_to(Permission.PUSH_AUDIT),
)
def retry(request: ApiRequest, sink_id: uuid.UUID) -> SinkView:
    return retry_sink(actor=actor_of(request), sink_id=sink_id, now=timezone.now())


@router.delete(
    "/{sink_id}",
    response={204: None},
    summary="Push nothing more to it.",
    openapi_extra=open_to(Permission.PUSH_AUDIT),
)
def delete(request: ApiRequest, sink_id: uuid.UUID) -> Status[None]:
    delete_sink(actor=actor_of(request), sink_id=sink_id, now=timezone.now())
    return Status(204, None)
