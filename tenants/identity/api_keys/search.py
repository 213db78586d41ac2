"""Search of API keys by kind, state, owner or text, with a sort order."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Lower

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page, map_page
from tenants.base.sorted_pagination import SortOrder, fetch_sorted_page
from tenants.base.validation.text import is_storable
from tenants.identity.api_keys.queries import (
    KeyState,
    KeyView,
    build_key_view,
    find_erased_people,
    select_visible_keys,
)
from tenants.identity.api_keys.unowned import filter_unowned_keys
from tenants.models import ApiKey, Membership, User
from tenants.models.api_key import filter_idle_keys, make_active_condition
from tenants.policy.queries import load_active_policy
from tenants.security.authorization.actor import Actor

IDLE_DAYS: Final = 90  # until a key is idle, if the policy sets no number of days
# The places of keys without a last use or an expiry in the sort orders.
_NEVER_USED: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FAR_FUTURE: Final = datetime(9999, 1, 1, tzinfo=UTC)
_LOOKUP_ID_CHARS: Final = 8  # length of a lookup ID


class KeyConcern(StrEnum):
    """A reason to review a key."""

    IDLE = "idle"  # in force, but not used, created or rotated for a long time
    UNOWNED = "unowned"  # shown to a user who may no longer create keys (api_keys.unowned)
    LEAKED = "leaked"  # found in public; the key may be in any state


class KeyOrder(StrEnum):
    NAME = "name"
    CREATED = "created"
    EXPIRES = "expires"
    LAST_USED = "last_used"


_SORT_ORDERS: Final = MappingProxyType(
    {
        KeyOrder.NAME: SortOrder(Lower("name")),
        KeyOrder.CREATED: SortOrder(F("created_at"), is_time=True),
        KeyOrder.EXPIRES: SortOrder(
            Coalesce("expires_at", Value(_FAR_FUTURE), output_field=DateTimeField()), is_time=True
        ),
        KeyOrder.LAST_USED: SortOrder(
            Coalesce("last_used_at", Value(_NEVER_USED), output_field=DateTimeField()), is_time=True
        ),
    }
)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """A filter of keys. None and "": not filtered.

    Playground keys are left out, unless leaked keys are requested. With `is_playground`, only
    playground keys are found.
    """

    # Part of the name or of the owner's e-mail address, or the beginning of the lookup ID.
    text: str = ""
    kind: KeyKind | None = None
    state: KeyState | None = None
    owner_id: UserId | None = None
    concern: KeyConcern | None = None
    is_playground: bool = False
    is_device: bool | None = None  # issued to an editor that signed in
    order: KeyOrder = KeyOrder.CREATED
    is_descending: bool = True


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """Numbers of keys. Playground keys count only in `leaked`."""

    listed: int  # in any state
    idle: int
    unowned: int
    leaked: int
    idle_days: int  # days without use after which a key is idle
    has_idle_revocation: bool  # whether the policy revokes idle keys


def find_keys(
    *, actor: Actor, key_filter: KeyFilter, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Return a page of keys. Two queries, three for idle keys.

    Raises Forbidden, and InvalidValue for a bad cursor.
    """
    order = replace(_SORT_ORDERS[key_filter.order], is_descending=key_filter.is_descending)
    with tenant_scope(actor.tenant_id):
        keys = _filter_keys(actor, key_filter, now)
        page = fetch_sorted_page(keys, order=order, limit=limit, cursor=cursor)
        erased_ids = find_erased_people(page.rows)
    return map_page(page, lambda row: build_key_view(row, now, erased_ids))


def count_keys(*, actor: Actor, now: datetime) -> KeyCounts:
    """Count the keys that the actor may see. Five queries. Raises Forbidden."""
    days, revokes = _get_idle_days(actor)
    with tenant_scope(actor.tenant_id):
        keys = select_visible_keys(actor).filter(is_playground=False)
        return KeyCounts(
            listed=keys.count(),
            idle=_filter_by_concern(keys, KeyConcern.IDLE, days, now).count(),
            unowned=_filter_by_concern(keys, KeyConcern.UNOWNED, days, now).count(),
            leaked=_filter_by_concern(
                select_visible_keys(actor), KeyConcern.LEAKED, days, now
            ).count(),
            idle_days=days,
            has_idle_revocation=revokes,
        )


def _filter_keys(actor: Actor, key_filter: KeyFilter, now: datetime) -> QuerySet[ApiKey]:
    keys = select_visible_keys(actor)
    # A leaked playground key can be misused, even if it expires soon.
    if key_filter.is_playground or key_filter.concern is not KeyConcern.LEAKED:
        keys = keys.filter(is_playground=key_filter.is_playground)
    if key_filter.kind is not None:
        keys = keys.filter(kind=key_filter.kind)
    if key_filter.state is not None:
        keys = keys.filter(_make_state_condition(key_filter.state, now))
    if key_filter.is_device is not None:
        keys = keys.filter(is_device=key_filter.is_device)
    if key_filter.owner_id is not None:
        keys = keys.filter(owner_id=UUID(key_filter.owner_id))
    if key_filter.concern is not None:
        days = IDLE_DAYS  # not used for other concerns than IDLE
        if key_filter.concern is KeyConcern.IDLE:
            days, _ = _get_idle_days(actor)
        keys = _filter_by_concern(keys, key_filter.concern, days, now)
    return _filter_by_text(keys, key_filter.text.strip())


def _filter_by_text(keys: QuerySet[ApiKey], text: str) -> QuerySet[ApiKey]:
    if not text:
        return keys
    if not is_storable(text):
        return keys.none()
    owners = User.objects.filter(id=OuterRef("owner_id"), email__icontains=text)
    # Logs and lists show the beginning of a key, such as cpk_live_Ab3dE6gH. Such a text must find
    # the key by its lookup ID, which follows the last "_".
    lookup_id = text.rpartition("_")[2][:_LOOKUP_ID_CHARS]
    # A search must not reveal the address of an erased user.
    erased_owners = Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"), user_id=OuterRef("owner_id"), erased_at__isnull=False
    )
    condition = Q(name__icontains=text) | (Exists(owners) & ~Exists(erased_owners))
    if lookup_id:  # every lookup ID starts with ""
        condition |= Q(lookup_id__startswith=lookup_id)
    return keys.filter(condition)


def _make_state_condition(state: KeyState, now: datetime) -> Q:
    if state is KeyState.ACTIVE:
        return make_active_condition(now)
    if state is KeyState.REVOKED:
        return Q(revoked_at__isnull=False)
    return Q(revoked_at=None, expires_at__lte=now)


def _filter_by_concern(
    keys: QuerySet[ApiKey], concern: KeyConcern, idle_days: int, now: datetime
) -> QuerySet[ApiKey]:
    if concern is KeyConcern.IDLE:
        return filter_idle_keys(keys, unused_for=timedelta(days=idle_days), now=now)
    if concern is KeyConcern.UNOWNED:
        return filter_unowned_keys(keys, now)
    return keys.filter(leaked_at__isnull=False)


def _get_idle_days(actor: Actor) -> tuple[int, bool]:
    """Return the days until an unused key is idle, and whether the policy revokes idle keys."""
    days = load_active_policy(tenant_id=actor.tenant_id).revoke_idle_keys_after_days
    return (IDLE_DAYS, False) if days is None else (days, True)
