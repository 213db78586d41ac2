"""API keys over REST."""

from datetime import datetime
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import AwareDatetime, Field

from caret.contracts.credential import KeyKind
from caret.foundation.ids import LookupId, UserId
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.schema import Answer, Body
from tenants.errors import Invalid
from tenants.keys.operations import NewKey, create_key, revoke_key
from tenants.keys.queries import MAX_PAGE, KeyPage, KeyState, KeyView, list_keys
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.members.queries import list_members

router = Router(tags=["keys"])


class Key(Answer):
    lookup_id: str
    kind: KeyKind
    name: str
    owner_email: str | None  # null: a service key
    state: KeyState
    created_at: datetime
    expires_at: datetime | None  # null: never
    revoked_at: datetime | None
    last_used_at: datetime | None  # to the minute


class KeyList(Answer):
    keys: list[Key]  # newest first
    total: int


class Page(Body):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class CreateKey(Body, json_schema_extra={"example": {"name": "Build server", "kind": "svc"}}):
    name: str
    kind: KeyKind = KeyKind.DEVELOPER
    owner_email: str | None = None  # a member's; null: a service key
    expires_at: AwareDatetime | None = None  # null: never


class CreatedKey(Answer):
    text: str  # shown this once
    key: Key


class RevokeKey(Body, json_schema_extra={"example": {"reason": "The laptop was stolen."}}):
    reason: Annotated[str, Field(max_length=1_000)] = ""


@router.get(
    "",
    response=KeyList,
    summary="List API keys: all of the tenant's, or one's own.",
    openapi_extra=open_to(Permission.READ_KEYS, Permission.READ_OWN_KEYS),
)
def list_all(request: ApiRequest, page: Query[Page]) -> KeyPage:
    return list_keys(
        actor=actor_of(request), limit=page.limit, offset=page.offset, now=timezone.now()
    )


@router.post(
    "",
    response={201: CreatedKey},
    summary="Make an API key; its text is in this answer only.",
    openapi_extra=open_to(Permission.CREATE_KEYS),
)
def create(request: ApiRequest, asked: CreateKey) -> Status[object]:
    actor = actor_of(request)
    actor.require(Permission.CREATE_KEYS)  # before the owner's address can be asked about
    new = NewKey(
        kind=asked.kind,
        owner_id=None if asked.owner_email is None else _owner(actor, asked.owner_email),
        name=asked.name,
        expires_at=asked.expires_at,
    )
    return Status(201, create_key(actor=actor, new=new, now=timezone.now()))


@router.post(
    "/{lookup_id}/revoke",
    response=Key,
    summary="Revoke an API key; gateways refuse it within a second.",
    openapi_extra=open_to(Permission.REVOKE_KEYS),
)
def revoke(request: ApiRequest, lookup_id: str, asked: RevokeKey | None = None) -> KeyView:
    return revoke_key(
        actor=actor_of(request),
        lookup_id=LookupId(lookup_id),
        reason=asked.reason if asked else "",
        now=timezone.now(),
    )


def _owner(actor: Actor, email: str) -> UserId:
    for member in list_members(tenant_id=actor.tenant_id):
        if member.email == email.strip().lower():
            return member.user_id
    raise Invalid("owner_email", "The owner is no member of this tenant.")
