"""Queries of API keys: all keys of a tenant, or the actor's own."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db.models import QuerySet

from caret.contracts.api_key import KeyKind, ParsedKey
from caret.foundation.ids import LookupId, TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.base.validation.text import is_storable
from tenants.identity.api_keys.key_secrets import match_secret
from tenants.identity.api_keys.scopes import KeyScope, parse_scopes
from tenants.models import ApiKey
from tenants.models.api_key import filter_idle_keys
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.erased_users import find_erased_users, get_visible_email

MAX_IDLE_DAYS: Final = 3_660  # that the REST API accepts for list_idle_keys
_PEOPLE: Final = ("owner", "created_by", "issued_by")  # foreign keys to users


class KeyState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyView:
    lookup_id: LookupId
    kind: KeyKind
    name: str
    owner_id: UserId | None  # None: a service key
    owner_email: str | None  # None: a service key or an erased user
    # The creator. If another API key created this key: the user who was shown that other key.
    # None: the platform, an operator, an erased user, or unknown.
    created_by_email: str | None
    # The user who was shown the current text. None: the platform, an operator, an erased user, or
    # unknown.
    issued_by_email: str | None
    state: KeyState
    created_at: datetime
    expires_at: datetime | None  # None: never
    revoked_at: datetime | None  # None: not revoked
    last_used_at: datetime | None  # to the minute; None: never used
    scopes: frozenset[KeyScope]
    networks: tuple[str, ...]  # networks that the key may be used from; empty: any
    issued_at: datetime  # of the current text
    # When the text from before the last rotation becomes invalid; None: there is none.
    previous_ends_at: datetime | None
    is_playground: bool  # created by the playground, for an hour
    is_device: bool  # issued to an editor that signed in
    leaked_at: datetime | None  # when the key was found in public; None: never


@dataclass(frozen=True, slots=True)
class KeySummary:
    keys: list[KeyView]  # the newest ones, newest first
    total: int  # number of keys, including those that are not in `keys`


def list_keys(*, actor: Actor, limit: int, cursor: str | None, now: datetime) -> Page[KeyView]:
    """Return a page of keys, newest first. Two queries.

    Raises Forbidden, and InvalidValue for a bad cursor.
    """
    return build_key_page(actor, select_visible_keys(actor), limit=limit, cursor=cursor, now=now)


def list_idle_keys(
    *, actor: Actor, unused_for: timedelta, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Return a page of active keys that were not used, created or rotated in the last `unused_for`.

    Raises the same errors as list_keys.
    """
    idle = filter_idle_keys(select_visible_keys(actor), unused_for=unused_for, now=now)
    return build_key_page(actor, idle, limit=limit, cursor=cursor, now=now)


def summarize_keys(*, actor: Actor, limit: int, now: datetime) -> KeySummary:
    """Return the newest keys and the total number. Three queries. Raises Forbidden."""
    with tenant_scope(actor.tenant_id):
        return build_key_summary(select_visible_keys(actor), limit=limit, now=now)


def find_key(*, actor: Actor, lookup_id: LookupId, now: datetime) -> KeyView:
    """Return one key. Raises Forbidden, NotFound."""
    require_lookup_id(lookup_id)
    with tenant_scope(actor.tenant_id):
        try:
            row = select_visible_keys(actor).get(lookup_id=lookup_id)
        except ApiKey.DoesNotExist as error:
            raise NotFound("This key does not exist.") from error
        return build_key_view(row, now, find_erased_people([row]))


def require_lookup_id(lookup_id: LookupId) -> None:
    """Check that Postgres can store the text. Raises NotFound."""
    if not is_storable(lookup_id):
        raise NotFound("This key does not exist.")


def is_key_active(*, tenant_id: TenantId, key: ParsedKey, now: datetime) -> bool:
    """Return whether the text of a key is valid in the tenant now. Checks no permission."""
    with tenant_scope(tenant_id):
        match = match_secret(key, ApiKey.objects.filter(lookup_id=key.lookup_id))
    if match is None:
        return False
    row, secret = match
    is_valid = secret.expires_at is None or secret.expires_at > now
    return is_valid and _compute_state(row, now) is KeyState.ACTIVE


def build_key_page(
    actor: Actor, keys: QuerySet[ApiKey], *, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Return a page of keys, newest first. Two queries.

    `keys` must select the related owner, creator and issuer. Raises InvalidValue.
    """
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        rows = fetch_page_rows(keys, limit=limit, after=after)
        erased_ids = find_erased_people(rows)
    page = build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )
    return map_page(page, lambda row: build_key_view(row, now, erased_ids))


def build_key_summary(keys: QuerySet[ApiKey], *, limit: int, now: datetime) -> KeySummary:
    """Return the newest keys and the total number. Three queries.

    Must run inside the tenant's scope.
    """
    # fetch_page_rows also returns the first row of the next page.
    rows = fetch_page_rows(keys.select_related(*_PEOPLE), limit=limit, after=None)[:limit]
    erased_ids = find_erased_people(rows)
    return KeySummary(
        keys=[build_key_view(row, now, erased_ids) for row in rows], total=keys.count()
    )


def select_visible_keys(actor: Actor) -> QuerySet[ApiKey]:
    """Select the keys that the actor may see, with owner, creator and issuer. Raises Forbidden."""
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id).select_related(*_PEOPLE)
    if actor.has_permission(Permission.READ_KEYS):
        return keys
    actor.require(Permission.READ_OWN_KEYS)
    return keys.none() if actor.user_id is None else keys.filter(owner=uuid.UUID(actor.user_id))


def find_erased_people(rows: Sequence[ApiKey]) -> frozenset[uuid.UUID]:
    """Return the erased users among the owners, creators and issuers of a tenant's keys.

    Must run inside the tenant's scope.
    """
    people = (id_ for row in rows for id_ in (row.owner_id, row.created_by_id, row.issued_by_id))
    return find_erased_users(TenantId(str(rows[0].tenant_id)), people) if rows else frozenset()


def build_key_view(key: ApiKey, now: datetime, erased_ids: frozenset[uuid.UUID]) -> KeyView:
    return KeyView(
        lookup_id=LookupId(key.lookup_id),
        kind=KeyKind(key.kind),
        name=key.name,
        owner_id=None if key.owner_id is None else UserId(str(key.owner_id)),
        owner_email=get_visible_email(key.owner, erased_ids),
        created_by_email=get_visible_email(key.created_by, erased_ids),
        issued_by_email=get_visible_email(key.issued_by, erased_ids),
        state=_compute_state(key, now),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
        scopes=parse_scopes(key.scopes),
        networks=tuple(key.networks),
        issued_at=key.issued_at or key.created_at,
        previous_ends_at=key.previous_ends_at,
        is_playground=key.is_playground,
        is_device=key.is_device,
        leaked_at=key.leaked_at,
    )


def _compute_state(key: ApiKey, now: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE
