"""Operations that create a member's own keys, as the member's effective policy allows.

1. The policy may allow own keys. It limits their lifetime and their modes.
2. An own key is a developer key: it can request completions, and has no scope of the REST API.
3. A member can have a limited number of keys, so that no member uses up the tenant's maximum.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import Q

from caret.contracts.api_key import KeyKind
from caret.contracts.policy import Mode
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey, add_key
from tenants.identity.api_keys.row_writes import REVOKED_KEY_RETENTION, load_owner_policy
from tenants.identity.api_keys.scopes import KeyScope, list_modes
from tenants.identity.api_keys.validation import MAX_NAME_CHARS, KeyRequest
from tenants.models import ApiKey
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.authorization.actor import Actor

# Of a member. Revoked and expired keys count for REVOKED_KEY_RETENTION after their end.
MAX_OWN_KEYS: Final = 50
DEVICE_KEY_LIFETIME: Final = timedelta(days=180)  # shorter if the policy requires it
_SCOPES: Final = MappingProxyType(
    {
        Mode.INLINE: KeyScope.INLINE,
        Mode.FIM: KeyScope.FIM,
        Mode.BLOCK: KeyScope.BLOCK,
        Mode.DOCSTRING: KeyScope.DOCSTRING,
        Mode.CHAT: KeyScope.CHAT,
        Mode.EDIT: KeyScope.EDIT,
    }
)


@dataclass(frozen=True, slots=True)
class OwnKeyTerms:
    """The limits of the policy on a member's own keys."""

    is_allowed: bool  # whether the member may create keys for themselves
    max_days: int | None  # maximum lifetime; None: no limit
    scopes: frozenset[KeyScope]  # one for each mode that the policy allows


def find_own_key_terms(*, actor: Actor) -> OwnKeyTerms:
    """Return the terms of the actor's effective policy. One query. Raises Forbidden."""
    user_id = _require_user(actor)
    policy = load_owner_policy(actor.tenant_id, user_id)
    return OwnKeyTerms(
        is_allowed=policy.allows_own_keys and actor.has_permission(Permission.MANAGE_OWN_KEYS),
        max_days=policy.max_key_lifetime_days,
        scopes=frozenset(_SCOPES[mode] for mode in policy.features),
    )


def create_own_key(*, actor: Actor, new: KeyRequest, now: datetime, reason: str = "") -> CreatedKey:
    """Create a developer key for the actor. The kind and the owner in `new` are not used.

    Gateways accept the key at once. Raises Forbidden, InvalidValue, Conflict.
    """
    actor.require(Permission.MANAGE_OWN_KEYS)
    new = replace(new, kind=KeyKind.DEVELOPER, owner_id=_require_user(actor))
    with tenant_scope(actor.tenant_id):
        # Locks the tenant first, so that concurrent creations cannot exceed the maximum of keys.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        terms = require_may_create_own_key(actor=actor, now=now)
        if not list_modes(new.scopes) <= list_modes(terms.scopes):
            raise InvalidValue("scopes", "Your policy does not allow some of these modes.")
        return add_key(actor, new, now, reason=reason)


def create_device_key(*, actor: Actor, name: str, now: datetime) -> CreatedKey:
    """Create the key of an editor that signed in. Raises Forbidden, InvalidValue, Conflict."""
    terms = find_own_key_terms(actor=actor)
    max_lifetime = DEVICE_KEY_LIFETIME
    if terms.max_days is not None:
        max_lifetime = min(max_lifetime, timedelta(days=terms.max_days))
    new = KeyRequest(
        kind=KeyKind.DEVELOPER,
        owner_id=actor.user_id,
        name=name[:MAX_NAME_CHARS],
        expires_at=now + max_lifetime,
        scopes=terms.scopes,
        is_device=True,
    )
    return create_own_key(actor=actor, new=new, now=now, reason="Signed in from an editor.")


def require_may_create_own_key(*, actor: Actor, now: datetime) -> OwnKeyTerms:
    """Check that the actor may create one more own key, and return the terms for it.

    Raises Forbidden, Conflict.
    """
    actor.require(Permission.MANAGE_OWN_KEYS)
    terms = find_own_key_terms(actor=actor)
    if not terms.is_allowed:
        raise Forbidden("Your policy does not allow you to create your own keys.")
    remembered_since = now - REVOKED_KEY_RETENTION
    is_forgotten = Q(revoked_at__lt=remembered_since) | Q(expires_at__lt=remembered_since)
    with tenant_scope(actor.tenant_id):
        keys = ApiKey.objects.filter(
            tenant_id=actor.tenant_id,
            owner_id=UUID(_require_user(actor)),
            is_playground=False,
        )
        num_keys = keys.exclude(is_forgotten).count()
    if num_keys >= MAX_OWN_KEYS:
        raise Conflict(
            "You already have {most} keys, which is the limit. Revoked and expired keys "
            "still count for {days} days after they end.",
            most=MAX_OWN_KEYS,
            days=REVOKED_KEY_RETENTION.days,
        )
    return terms


def _require_user(actor: Actor) -> UserId:
    if actor.user_id is None:
        raise Forbidden("Only members have keys of their own.")
    return actor.user_id
