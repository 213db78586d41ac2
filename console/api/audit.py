"""The audit log over REST."""

import uuid
from datetime import datetime
from typing import Annotated, Any

from django.utils import timezone
from ninja import Query, Router
from pydantic import AwareDatetime, Field

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.security.audit.queries import AuditEntryView, AuditFilter, list_entries
from tenants.security.authorization.actor import ActorKind

router = Router(tags=["audit"])


class AuditEntryResponse(ResponseSchema):
    sequence: int  # starts at 1, without gaps
    id: uuid.UUID
    at: datetime
    actor_kind: ActorKind
    actor_id: uuid.UUID | None  # null: not a person
    actor_email: str | None
    actor_key: str | None  # lookup ID; null: no key was used
    action: str
    target: str
    before: Any  # null: the target did not exist, or was only read
    after: Any
    address: str | None  # null: not a network request
    request_id: str
    reason: str
    previous_hash: str
    hash: str  # its input is described in platform/docs/audit.md


class EntryList(PageResponse):
    items: Items[AuditEntryResponse]  # newest first


class AuditQuery(PageQuery):
    action: Annotated[str, Field(max_length=60)] | None = None
    # A user's ID, the `actor_key` of an entry, or "platform".
    actor: Annotated[str, Field(max_length=40)] | None = None
    target: Annotated[str, Field(max_length=200)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None  # exclusive


@router.get(
    "",
    response=EntryList,
    summary="List entries of the audit log. Reading it is itself recorded as an entry.",
    openapi_extra=documents_permissions(Permission.READ_AUDIT),
)
def list_all(request: AuthenticatedRequest, query: Query[AuditQuery]) -> Page[AuditEntryView]:
    return list_entries(
        actor=actor_of(request),
        audit_filter=AuditFilter(query.action, query.actor, query.target, query.since, query.until),
        limit=query.limit,
        cursor=query.cursor,
        now=timezone.now(),
    )
