"""Authentication of service keys at the REST API. The key determines the tenant."""

from datetime import datetime
from typing import Final
from uuid import uuid4

from caret.contracts.api_key import KeyKind, parse_key
from caret.contracts.ip_allowlist import is_allowed
from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import LookupId, TenantId, UserId
from caret.foundation.postgres.tenant_scope import key_lookup_scope, tenant_scope
from tenants.base.errors import Unauthenticated
from tenants.base.permissions import Role
from tenants.identity.api_keys.key_secrets import KeySecret, list_secrets, match_secret
from tenants.identity.api_keys.scopes import list_modes, list_permissions, parse_scopes
from tenants.models import ApiKey
from tenants.security.authorization.actor import Actor, KeyGrant
from tenants.usage.ingestion.key_last_used import record_key_use

# Lookup IDs are random and unique only within a tenant: several tenants may have the same one.
_MAX_KEYS_PER_LOOKUP_ID: Final = 16


def authenticate_key(*, text: str, address: str | None, now: datetime) -> Actor:
    """Return the actor of a service key, and record the use of the key.

    `address` is the caller's IP address. The error says that a key is revoked or expired only if
    the caller presents the whole key from an allowed network. Gateways do the same. Raises
    Unauthenticated.
    """
    key = parse_key(text)
    if key is None:
        raise _make_error()
    with key_lookup_scope(key.lookup_id):
        rows = ApiKey.objects.filter(lookup_id=key.lookup_id).select_related("tenant")
        match = match_secret(key, rows.order_by("tenant_id")[:_MAX_KEYS_PER_LOOKUP_ID])
    if match is None:
        raise _make_error()
    row, secret = match
    if not is_allowed(tuple(row.networks), address):
        raise _make_error()
    _check_in_force(row, secret, now)
    with tenant_scope(TenantId(str(row.tenant_id))):
        record_key_use([(row.id, now)])
    return _build_actor(row, secret, address)


def find_key_actor(
    *, tenant_id: TenantId, lookup_id: LookupId, address: str | None, now: datetime
) -> Actor:
    """Return the actor of a service key that was authenticated before.

    The actor has the key's current permissions. Must run inside the tenant's scope. Raises
    Unauthenticated.
    """
    rows = ApiKey.objects.filter(tenant_id=tenant_id, lookup_id=lookup_id).select_related("tenant")
    row = rows.order_by("id").first()
    if row is None or not is_allowed(tuple(row.networks), address):
        raise _make_error()
    secret = list_secrets(row)[0]  # the current one
    _check_in_force(row, secret, now)
    return _build_actor(row, secret, address)


def _check_in_force(row: ApiKey, secret: KeySecret, now: datetime) -> None:
    """Check the kind, the state and the tenant of a key. Raises Unauthenticated."""
    if row.kind != KeyKind.SERVICE:
        raise Unauthenticated("wrong_api_key_kind", "The REST API accepts only service keys.")
    if row.revoked_at is not None:
        raise Unauthenticated("revoked_api_key", "This API key was revoked.")
    if secret.expires_at is not None and secret.expires_at <= now:
        raise Unauthenticated("expired_api_key", "This API key has expired.")
    if row.tenant.status != TenantStatus.ACTIVE:
        raise Unauthenticated(
            "tenant_suspended",
            "This tenant is {status}, and its API keys are not accepted. Ask an owner to contact "
            "the operator of Caret.",
            status=TenantStatus(row.tenant.status),
        )


def _build_actor(row: ApiKey, secret: KeySecret, address: str | None) -> Actor:
    scopes = parse_scopes(row.scopes)
    return Actor(
        tenant_id=TenantId(str(row.tenant_id)),
        user_id=None,
        role=Role.ADMINISTRATOR,  # no key has the permissions that only owners have
        address=address,
        request_id=str(uuid4()),
        key=LookupId(row.lookup_id),
        grant=KeyGrant(
            permissions=list_permissions(scopes),
            modes=list_modes(scopes),
            networks=tuple(row.networks),
            expires_at=row.expires_at,
            issued_by=None if row.issued_by_id is None else UserId(str(row.issued_by_id)),
            is_superseded=secret.is_superseded,
        ),
    )


def _make_error() -> Unauthenticated:
    return Unauthenticated("invalid_api_key", "This is not a valid API key.")
