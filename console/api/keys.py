"""API keys over REST."""

from datetime import datetime, timedelta
from typing import Annotated, Final

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import AwareDatetime, Field

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import LookupId, UserId
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.errors import InvalidValue
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import (
    MAX_OVERLAP,
    KeyRotation,
    create_key,
    revoke_key,
    rotate_key,
)
from tenants.identity.api_keys.queries import (
    MAX_IDLE_DAYS,
    KeyState,
    KeyView,
    list_idle_keys,
    list_keys,
)
from tenants.identity.api_keys.scopes import DEFAULT_SCOPES, KeyScope, serialize_scopes
from tenants.identity.api_keys.unowned import list_unowned_keys
from tenants.identity.api_keys.validation import MAX_NETWORKS, KeyRequest
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import list_members

router = Router(tags=["keys"])

_MAX_OVERLAP_HOURS: Final = MAX_OVERLAP // timedelta(hours=1)
_NEW_EXAMPLE: Final = {
    "name": "Monthly report",
    "kind": "svc",
    "scopes": ["usage:read"],
    "networks": ["192.0.2.0/24"],
    "expires_at": "2027-01-31T00:00:00Z",
}
Scopes = Annotated[list[KeyScope], Field(min_length=1, max_length=len(KeyScope))]
Networks = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=MAX_NETWORKS)]
Reason = Annotated[str, Field(max_length=1_000)]  # for the audit log


class KeyResponse(ResponseSchema):
    lookup_id: str
    kind: KeyKind
    name: str
    owner_email: str | None  # null: a service key, or an erased user
    # The user who created the key. If another key created it: the user who was shown the text of
    # that other key. Null: unknown, or an erased user.
    created_by_email: str | None
    # The user who was shown the current text. Null: unknown, or an erased user.
    issued_by_email: str | None
    state: KeyState
    created_at: datetime
    expires_at: datetime | None  # null: never
    revoked_at: datetime | None  # null: not revoked
    last_used_at: datetime | None  # to the minute; null: never
    scopes: list[str]  # sorted
    networks: list[str]  # networks that the key may be used from; empty: all
    issued_at: datetime  # of the current text
    # The time until which the text before the last rotation is valid. Null: there is no such text.
    previous_ends_at: datetime | None

    @staticmethod
    def resolve_scopes(view: KeyView) -> list[str]:
        return serialize_scopes(view.scopes)


class KeyList(PageResponse):
    items: Items[KeyResponse]  # newest first


class IdleQuery(PageQuery):
    days: Annotated[int, Field(ge=1, le=MAX_IDLE_DAYS)] = 90  # without use


class CreateKey(RequestSchema, json_schema_extra={"example": _NEW_EXAMPLE}):
    name: str
    kind: KeyKind = KeyKind.DEVELOPER
    # Of a member; null if and only if it is a service key. The default kind therefore needs an
    # owner, and a body with neither field is rejected.
    owner_email: str | None = None
    expires_at: AwareDatetime | None = None  # null: never
    scopes: Scopes = sorted(DEFAULT_SCOPES)
    networks: Networks = Field(default_factory=list)  # in CIDR notation; empty: all


class CreatedKeyResponse(ResponseSchema):
    text: str  # the secret key itself; returned only once
    key: KeyResponse


class RevokeKey(RequestSchema, json_schema_extra={"example": {"reason": "The laptop was stolen."}}):
    reason: Reason = ""


class RotateKey(RequestSchema, json_schema_extra={"example": {"overlap_hours": 24}}):
    # The previous text stays valid for this number of hours.
    overlap_hours: Annotated[int, Field(ge=0, le=_MAX_OVERLAP_HOURS)] = 24
    expires_at: AwareDatetime | None = None  # null: keep the current expiry
    reason: Reason = ""


@router.get(
    "",
    response=KeyList,
    summary="List API keys: the tenant's, or only your own.",
    openapi_extra=document_permissions(Permission.READ_KEYS, Permission.READ_OWN_KEYS),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[KeyView]:
    return list_keys(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, now=timezone.now()
    )


@router.get(
    "/idle",
    response=KeyList,
    summary="List active API keys that were not used, created or rotated for a number of days.",
    openapi_extra=document_permissions(Permission.READ_KEYS, Permission.READ_OWN_KEYS),
)
def idle(request: AuthenticatedRequest, query: Query[IdleQuery]) -> Page[KeyView]:
    return list_idle_keys(
        actor=actor_of(request),
        unused_for=timedelta(days=query.days),
        limit=query.limit,
        cursor=query.cursor,
        now=timezone.now(),
    )


@router.get(
    "/unowned",
    response=KeyList,
    summary="List unowned keys: active keys shown to a user who may no longer create keys.",
    openapi_extra=document_permissions(Permission.READ_KEYS, Permission.READ_OWN_KEYS),
)
def unowned(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[KeyView]:
    return list_unowned_keys(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, now=timezone.now()
    )


@router.post(
    "",
    response={201: CreatedKeyResponse},
    summary="Create an API key; only this response contains its text.",
    openapi_extra=document_permissions(Permission.CREATE_KEYS),
)
def create(request: AuthenticatedRequest, body: CreateKey) -> Status[object]:
    actor = actor_of(request)
    # This check comes first: a caller without the permission must not learn from the errors of
    # _find_owner which addresses belong to members.
    actor.require(Permission.CREATE_KEYS)
    new = KeyRequest(
        kind=body.kind,
        owner_id=None if body.owner_email is None else _find_owner(actor, body.owner_email),
        name=body.name,
        expires_at=body.expires_at,
        scopes=frozenset(body.scopes),
        networks=tuple(body.networks),
    )
    return Status(201, create_key(actor=actor, new=new, now=timezone.now()))


@router.post(
    "/{lookup_id}/revoke",
    response=KeyResponse,
    summary="Revoke an API key; gateways reject it within a second.",
    openapi_extra=document_permissions(Permission.REVOKE_KEYS),
)
def revoke(request: AuthenticatedRequest, lookup_id: str, body: RevokeKey | None = None) -> KeyView:
    """Members may also revoke their own keys, with the permission `keys.manage_own`."""
    return revoke_key(
        actor=actor_of(request),
        lookup_id=LookupId(lookup_id),
        reason=body.reason if body else "",
        now=timezone.now(),
    )


@router.post(
    "/{lookup_id}/rotate",
    response=CreatedKeyResponse,
    summary="Rotate an API key: it gets a new text; the previous text stays valid for some hours.",
    openapi_extra=document_permissions(Permission.CREATE_KEYS),
)
def rotate(request: AuthenticatedRequest, lookup_id: str, body: RotateKey | None = None) -> object:
    body = body or RotateKey()
    return rotate_key(
        actor=actor_of(request),
        lookup_id=LookupId(lookup_id),
        rotation=KeyRotation(
            overlap=timedelta(hours=body.overlap_hours),
            expires_at=body.expires_at,
            reason=body.reason,
        ),
        now=timezone.now(),
    )


def _find_owner(actor: Actor, email: str) -> UserId:
    """Return the ID of the member with this address. Raises InvalidValue."""
    for member in list_members(tenant_id=actor.tenant_id):
        if member.email == email.strip().lower():
            return member.user_id
    raise InvalidValue("owner_email", "The owner is not a member of this tenant.")
