"""Keys that nobody answers for: whoever was shown their text may make no keys any more.

They go on, as what they run would stop; a new text, or revoking them, is for those who manage keys.
A member's own keys are not among them: they end with his membership.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from caret.foundation.ids import LookupId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page
from tenants.base.permissions import Permission, roles_with_permission
from tenants.identity.api_keys.queries import (
    KeySummary,
    KeyView,
    first_views,
    page_of_keys,
    visible_to,
)
from tenants.models import ApiKey, Membership
from tenants.models.api_key import active
from tenants.security.authorization.actor import Actor

MAX_LEFT: Final = 100  # named in an answer; the list has them all


def list_unattended_keys(
    *, actor: Actor, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Newest first. Raises Forbidden, and Invalid for a bad cursor. One query."""
    found = unowned(visible_to(actor), now)
    return page_of_keys(actor, found, limit=limit, cursor=cursor, now=now)


def is_unattended(*, actor: Actor, lookup_id: LookupId, now: datetime) -> bool:
    """Raises Forbidden. One query."""
    with tenant_scope(actor.tenant_id):
        keys = visible_to(actor).filter(lookup_id=lookup_id)
        return unowned(keys, now).exists()


def find_keys_shown_to(*, actor: Actor, user_id: UserId, now: datetime) -> KeySummary:
    """Of the unattended keys those that this user was shown, MAX_LEFT at most; to whoever changes
    members, whatever else he may see. Inside the tenant's scope; two queries."""
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, issued_by=UUID(user_id))
    return first_views(unowned(keys, now), limit=MAX_LEFT, now=now)


def unowned(keys: QuerySet[ApiKey], now: datetime) -> QuerySet[ApiKey]:
    makers = Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        user_id=OuterRef("issued_by_id"),
        ended_at=None,
        role__in=roles_with_permission(Permission.CREATE_KEYS),
    )
    is_ones_own = Q(owner_id=F("issued_by_id"), owner_id__isnull=False)
    shown = keys.filter(active(now), issued_by__isnull=False).exclude(is_ones_own)
    return shown.filter(~Exists(makers))
