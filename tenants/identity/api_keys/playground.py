"""The key of the console's playground. Only that page receives it, and it expires after an hour.

Rules:
1. A member has one playground key, and each start of the playground gives it a new secret. If each
   start created a key, the tenant would soon reach its maximum of keys.
2. A new secret ends the previous one at once.
3. Leaving a page ends only the secret that this page has received. The user may have opened another
   page since then.
4. A revoked key stays revoked. The next start creates another key.
"""

import uuid
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from caret.contracts.api_key import KeyKind, ParsedKey, generate_key
from caret.foundation.ids import LookupId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey
from tenants.identity.api_keys.queries import find_key
from tenants.identity.api_keys.row_writes import (
    check_key_lifetime_policy,
    insert_key,
    require_below_key_limit,
    require_member,
    set_secret,
    to_change_fields,
)
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tenants.models import ApiKey
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

NAME: Final = "Playground"  # of the keys
# Every policy allows this today: the shortest maximum lifetime that a policy can set is a day.
LIFETIME: Final = timedelta(hours=1)
SCOPES: Final = frozenset({KeyScope.INLINE, KeyScope.BLOCK})  # the modes that the page requests


def create_playground_key(*, actor: Actor, now: datetime) -> CreatedKey:
    """Create or rotate the actor's playground key. Gateways accept it at once.

    Raises Forbidden, InvalidValue, Conflict.
    """
    user_id = _require_user(actor)
    expires_at = now + LIFETIME
    with tenant_scope(actor.tenant_id):
        # Locks the tenant, so that the second of two concurrent starts finds the key of the first.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        # Never refuses while every policy allows LIFETIME. Each creation of a key has this check.
        check_key_lifetime_policy(actor, user_id, expires_at, now)
        require_member(actor, user_id)
        row = _filter_playground_keys(actor, user_id).order_by("-created_at").first()
        if row is None:
            generated = generate_key(KeyKind.TEST)
            action, change = "key.created", _insert_key(actor, user_id, generated, now)
        else:
            generated = generate_key(KeyKind.TEST, lookup_id=LookupId(row.lookup_id))
            row.issued_by_id = uuid.UUID(user_id)
            action = "key.rotated"
            change = set_secret(
                row, generated, overlap=timedelta(0), expires_at=expires_at, now=now
            )
        record_change(
            actor=actor,
            action=action,
            target=f"key:{generated.lookup_id}",
            change=change,
            now=now,
        )
        view = find_key(actor=actor, lookup_id=generated.lookup_id, now=now)
    return CreatedKey(text=generated.text, key=view)


def end_playground_key(*, actor: Actor, issued_at: datetime, now: datetime) -> bool:
    """End the actor's secret that was issued at `issued_at`. Return False if it was not in force.

    Raises Forbidden.
    """
    user_id = _require_user(actor)
    with tenant_scope(actor.tenant_id):
        # A key has no `issued_at` before its first rotation: its secret is as old as the key.
        is_issued_then = Q(issued_at=issued_at) | Q(issued_at=None, created_at=issued_at)
        keys = _filter_playground_keys(actor, user_id).filter(is_issued_then, expires_at__gt=now)
        if not keys.exists():
            return False
        # Lock order: the tenant before the key, as in create_playground_key. Otherwise the two
        # could deadlock.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = keys.order_by("-created_at").first()
        if row is None:  # a new start has replaced the secret
            return False
        before, row.expires_at = row.expires_at, now
        row.save(update_fields=["expires_at"])
        record_change(
            actor=actor,
            action="key.ended",
            target=f"key:{row.lookup_id}",
            change=({"expires_at": _format_time(before)}, {"expires_at": _format_time(now)}),
            now=now,
        )
    return True


def _require_user(actor: Actor) -> UserId:
    """Return the actor's user ID. Raises Forbidden if the actor is not a user."""
    actor.require(Permission.USE_PLAYGROUND)
    if actor.user_id is None:
        raise Forbidden("Only members can use the playground.")
    return actor.user_id


def _filter_playground_keys(actor: Actor, user_id: UserId) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(
        tenant_id=actor.tenant_id,
        owner_id=uuid.UUID(user_id),
        is_playground=True,
        revoked_at=None,
    )


def _insert_key(
    actor: Actor, user_id: UserId, generated: ParsedKey, now: datetime
) -> tuple[ChangeFields | None, ChangeFields]:
    """Insert a new playground key, and return the change for the audit log. Raises Conflict."""
    require_below_key_limit(actor, now)
    new = KeyRequest(
        kind=KeyKind.TEST,
        owner_id=user_id,
        name=NAME,
        expires_at=now + LIFETIME,
        scopes=SCOPES,
        is_playground=True,
    )
    insert_key(actor, new, generated, now)
    return None, to_change_fields(new)


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
