"""Finds keys as people look for them: by kind, state, owner or a piece of text, in an order."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import Count, DateTimeField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Lower

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page, map_page
from tenants.base.sorted_pagination import SortOrder, fetch_sorted_page
from tenants.base.text_validation import is_storable
from tenants.identity.api_keys.queries import KeyState, KeyView, erased_people, view_of, visible_to
from tenants.identity.api_keys.unowned import unowned
from tenants.models import ApiKey, Membership, User
from tenants.models.api_key import active, idle_among
from tenants.policy.queries import find_policy
from tenants.security.authorization.actor import Actor

IDLE_DAYS: Final = 90  # where the policy does not say
_NEVER_USED: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER_ENDS: Final = datetime(9999, 1, 1, tzinfo=UTC)


class KeyConcern(StrEnum):
    """Why somebody should look at a key."""

    IDLE = "idle"  # in force, and nobody has used, made or rotated it for long
    UNOWNED = "unattended"  # who was shown its text may make no keys any more
    LEAKED = "leaked"  # found where others can read it, whatever became of it


class KeyOrder(StrEnum):
    NAME = "name"
    CREATED = "created"
    EXPIRES = "expires"
    LAST_USED = "used"


_PLACES: Final = MappingProxyType(
    {
        KeyOrder.NAME: SortOrder(Lower("name")),
        KeyOrder.CREATED: SortOrder(Coalesce("created_at", "created_at"), is_time=True),
        KeyOrder.EXPIRES: SortOrder(
            Coalesce("expires_at", Value(_NEVER_ENDS), output_field=DateTimeField()), is_time=True
        ),
        KeyOrder.LAST_USED: SortOrder(
            Coalesce("last_used_at", Value(_NEVER_USED), output_field=DateTimeField()), is_time=True
        ),
    }
)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """None and "": no matter which. Keys of the playground only where they are asked for, and among
    those that leaked."""

    text: str = ""  # a piece of the name or the owner's address, or how the lookup id begins
    kind: KeyKind | None = None
    state: KeyState | None = None
    owner_id: UserId | None = None
    concern: KeyConcern | None = None
    is_playground: bool = False
    order: KeyOrder = KeyOrder.CREATED
    is_descending: bool = True


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """Without those of the playground, unless they leaked."""

    listed: int
    idle: int
    unowned: int
    leaked: int
    idle_days: int  # after how many a key is idle
    has_idle_revocation: bool  # then, by policy


def find_keys(
    *, actor: Actor, wanted: KeyFilter, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Raises Forbidden, and Invalid for a bad cursor. Two queries, three for idle ones."""
    order = replace(_PLACES[wanted.order], is_descending=wanted.is_descending)
    with tenant_scope(actor.tenant_id):
        found = _matching(actor, wanted, now)
        page = fetch_sorted_page(found, order=order, limit=limit, cursor=cursor)
        erased = erased_people(page.rows)
    return map_page(page, lambda row: view_of(row, now, erased))


def count_keys(*, actor: Actor, now: datetime) -> KeyCounts:
    """Of those that the actor sees. Raises Forbidden. Five queries."""
    days, revokes = _idle_days(actor)
    with tenant_scope(actor.tenant_id):
        keys = visible_to(actor).filter(is_playground=False)
        return KeyCounts(
            listed=keys.count(),
            idle=_concerning(keys, KeyConcern.IDLE, days, now).count(),
            unowned=_concerning(keys, KeyConcern.UNOWNED, days, now).count(),
            leaked=_concerning(visible_to(actor), KeyConcern.LEAKED, days, now).count(),
            idle_days=days,
            has_idle_revocation=revokes,
        )


@dataclass(frozen=True, slots=True)
class KeyOnboardingStatus:
    """How far somebody has come with keys; of all that he sees."""

    has_key: bool
    has_completed: bool  # by one of them
    has_played: bool  # started a playground


def key_steps(*, actor: Actor) -> KeyOnboardingStatus:
    """Raises Forbidden. One query."""
    own = Q(is_playground=False)
    with tenant_scope(actor.tenant_id):
        found = visible_to(actor).aggregate(
            own=Count("lookup_id", filter=own),
            used=Count("lookup_id", filter=own & Q(last_used_at__isnull=False)),
            played=Count("lookup_id", filter=Q(is_playground=True)),
        )
    return KeyOnboardingStatus(
        has_key=found["own"] > 0,
        has_completed=found["used"] > 0,
        has_played=found["played"] > 0,
    )


def _matching(actor: Actor, wanted: KeyFilter, now: datetime) -> QuerySet[ApiKey]:
    found = visible_to(actor)
    # Whoever has found one has it, however short it lives.
    if wanted.is_playground or wanted.concern is not KeyConcern.LEAKED:
        found = found.filter(is_playground=wanted.is_playground)
    if wanted.kind is not None:
        found = found.filter(kind=wanted.kind)
    if wanted.state is not None:
        found = found.filter(_in_state(wanted.state, now))
    if wanted.owner_id is not None:
        found = found.filter(owner_id=UUID(wanted.owner_id))
    if wanted.concern is not None:
        days = _idle_days(actor)[0] if wanted.concern is KeyConcern.IDLE else IDLE_DAYS
        found = _concerning(found, wanted.concern, days, now)
    return _with_text(found, wanted.text.strip())


def _with_text(found: QuerySet[ApiKey], text: str) -> QuerySet[ApiKey]:
    if not text:
        return found
    if not is_storable(text):
        return found.none()
    owners = User.objects.filter(id=OuterRef("owner_id"), email__icontains=text)
    # A key's beginning is what logs and the list show: cpk_live_Ab3dE6gH.
    lookup_id = text.rpartition("_")[2][:8]
    # Nor does a search tell that somebody who was erased had this address.
    erased = Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"), user_id=OuterRef("owner_id"), erased_at__isnull=False
    )
    named = Q(name__icontains=text) | (Exists(owners) & ~Exists(erased))
    return found.filter(named | Q(lookup_id__startswith=lookup_id) if lookup_id else named)


def _in_state(state: KeyState, now: datetime) -> Q:
    if state is KeyState.ACTIVE:
        return active(now)
    if state is KeyState.REVOKED:
        return Q(revoked_at__isnull=False)
    return Q(revoked_at=None, expires_at__lte=now)


def _concerning(
    keys: QuerySet[ApiKey], concern: KeyConcern, idle_days: int, now: datetime
) -> QuerySet[ApiKey]:
    if concern is KeyConcern.IDLE:
        return idle_among(keys, unused_for=timedelta(days=idle_days), now=now)
    if concern is KeyConcern.UNOWNED:
        return unowned(keys, now)
    return keys.filter(leaked_at__isnull=False)


def _idle_days(actor: Actor) -> tuple[int, bool]:
    """And whether the policy revokes them then."""
    days = find_policy(tenant_id=actor.tenant_id).policy.revoke_idle_keys_after_days
    return (IDLE_DAYS, False) if days is None else (days, True)
