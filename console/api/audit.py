"""The audit log over REST."""

import uuid
from datetime import datetime
from typing import Annotated, Any

from django.utils import timezone
from ninja import Query, Router
from pydantic import AwareDatetime, Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
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
    actor_id: uuid.UUID | None  # null: the actor is not a user
    actor_email: str | None  # null: the actor is not a user, or was erased
    # The lookup ID of an API key, "scim:..." or "operator:...". Null: a user's session, or the
    # platform.
    actor_key: str | None
    action: str  # such as team.created
    target: str  # such as team:ID
    before: Any  # null: the target did not exist, or was only read
    after: Any  # null: the target no longer exists; for a read: its filters
    address: str | None  # IP address; null: not a network request
    request_id: str  # "": not a network request
    reason: str  # "": no reason was given
    previous_hash: str  # in hex, of the entry before
    hash: str  # in hex; platform/docs/audit.md describes its input


class EntryList(PageResponse):
    items: Items[AuditEntryResponse]  # newest first, by `sequence`


class AuditQuery(PageQuery):
    action: Annotated[str, Field(max_length=60)] | None = None  # or a prefix, such as "team.*"
    # A user's ID, the `actor_key` of an entry, or "platform".
    actor: Annotated[str, Field(max_length=40)] | None = None
    target: Annotated[str, Field(max_length=200)] | None = None  # or a prefix, such as "team:*"
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None  # exclusive


@router.get(
    "",
    response=EntryList,
    summary="List entries of the audit log. Each request for them also becomes an entry.",
    openapi_extra=document_permissions(Permission.READ_AUDIT),
)
def list_all(request: AuthenticatedRequest, query: Query[AuditQuery]) -> Page[AuditEntryView]:
    return list_entries(
        actor=actor_of(request),
        audit_filter=AuditFilter(query.action, query.actor, query.target, query.since, query.until),
        limit=query.limit,
        cursor=query.cursor,
        now=timezone.now(),
    )
