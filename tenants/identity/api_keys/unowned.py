"""Unowned keys: active keys whose secret was shown to a user who may no longer create keys.

They stay valid, because otherwise the programs that use them would stop. Owners and administrators
can rotate or revoke them. If a key was shown to its own owner, it is never unowned: it ends with
the owner's membership.
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
    build_key_page,
    build_key_summary,
    select_visible_keys,
)
from tenants.models import ApiKey, Membership
from tenants.models.api_key import make_active_condition
from tenants.security.authorization.actor import Actor

# In the result of a member operation. list_unowned_keys returns all unowned keys, in pages.
MAX_SUMMARIZED_KEYS: Final = 100


def list_unowned_keys(
    *, actor: Actor, limit: int, cursor: str | None, now: datetime
) -> Page[KeyView]:
    """Return a page of unowned keys, newest first. Two queries.

    Raises Forbidden, and InvalidValue for a bad cursor.
    """
    keys = filter_unowned_keys(select_visible_keys(actor), now)
    return build_key_page(actor, keys, limit=limit, cursor=cursor, now=now)


def is_unowned(*, actor: Actor, lookup_id: LookupId, now: datetime) -> bool:
    """Return whether a key is unowned. One query. Raises Forbidden."""
    with tenant_scope(actor.tenant_id):
        keys = select_visible_keys(actor).filter(lookup_id=lookup_id)
        return filter_unowned_keys(keys, now).exists()


def summarize_keys_shown_to(*, actor: Actor, user_id: UserId, now: datetime) -> KeySummary:
    """Return the newest unowned keys that a user was shown, and their total number.

    Member operations return this summary. Checks no permission to read keys. Must run inside the
    tenant's scope. Three queries.
    """
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, issued_by=UUID(user_id))
    return build_key_summary(filter_unowned_keys(keys, now), limit=MAX_SUMMARIZED_KEYS, now=now)


def filter_unowned_keys(keys: QuerySet[ApiKey], now: datetime) -> QuerySet[ApiKey]:
    """Return the unowned ones of the keys."""
    key_creators = Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        user_id=OuterRef("issued_by_id"),
        ended_at=None,
        role__in=roles_with_permission(Permission.CREATE_KEYS),
    )
    # A key without an owner is nobody's own key, so it can be unowned.
    is_own_key = Q(owner_id=F("issued_by_id"), owner_id__isnull=False)
    shown_keys = keys.filter(make_active_condition(now), issued_by__isnull=False).exclude(
        is_own_key
    )
    return shown_keys.filter(~Exists(key_creators))
