"""SCIM tokens, which authenticate a tenant's identity provider.

A token is shown once, when it is created. It stays valid until it is revoked.
"""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import LookupId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.bearer_tokens import BearerTokenKind, create_token, parse_token, token_digest
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import validate_printable
from tenants.models import ScimToken, Tenant
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

MAX_NAME_CHARS: Final = 120
MAX_TOKENS: Final = 20  # in force, per tenant
LAST_USED_PRECISION: Final = timedelta(minutes=1)  # at most one update of the row per minute


@dataclass(frozen=True, slots=True)
class ScimTokenView:
    id: uuid.UUID
    name: str
    created_at: datetime
    revoked_at: datetime | None  # None: in force
    last_used_at: datetime | None  # to the minute; None: never used


@dataclass(frozen=True, slots=True)
class CreatedScimToken:
    text: str = field(repr=False)  # shown once, stored nowhere
    token: ScimTokenView


def list_scim_tokens(*, actor: Actor) -> list[ScimTokenView]:
    """Return the tenant's tokens, also the revoked ones, newest first. Raises Forbidden."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        rows = ScimToken.objects.filter(tenant_id=actor.tenant_id).order_by("-created_at", "id")
        return [_to_view(row) for row in rows]


def create_scim_token(*, actor: Actor, name: str, now: datetime) -> CreatedScimToken:
    """Create a token. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise InvalidValue(
            "name", "Enter a token name of 1 to {most} characters.", most=MAX_NAME_CHARS
        )
    validate_printable("name", name)
    token = create_token(BearerTokenKind.SCIM, actor.tenant_id)
    with tenant_scope(actor.tenant_id):
        # Locks the tenant, so that concurrent calls cannot exceed the maximum of tokens.
        Tenant.objects.select_for_update(no_key=True).get(id=actor.tenant_id)
        in_force = ScimToken.objects.filter(tenant_id=actor.tenant_id, revoked_at=None)
        if in_force.count() >= MAX_TOKENS:
            raise Conflict(
                "You already have {most} active tokens, which is the limit. Revoke one first.",
                most=MAX_TOKENS,
            )
        row = ScimToken.objects.create(
            tenant_id=actor.tenant_id, name=name, digest=token_digest(token), created_at=now
        )
        record_change(
            actor=actor,
            action="scim_token.created",
            target=f"scim_token:{row.id}",
            change=(None, {"name": name}),
            now=now,
        )
    return CreatedScimToken(token.text, _to_view(row))


def revoke_scim_token(*, actor: Actor, token_id: uuid.UUID, now: datetime) -> ScimTokenView:
    """Revoke a token. A revoked token stays unchanged. Raises Forbidden, NotFound."""
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        tokens = ScimToken.objects.filter(tenant_id=actor.tenant_id, id=token_id)
        if tokens.filter(revoked_at=None).update(revoked_at=now):
            record_change(
                actor=actor,
                action="scim_token.revoked",
                target=f"scim_token:{token_id}",
                change=({"revoked_at": None}, {"revoked_at": now.isoformat()}),
                now=now,
            )
        if (row := tokens.order_by("id").first()) is None:
            raise NotFound("This token does not exist.")
        return _to_view(row)


def authenticate_scim_token(
    text: str, *, address: str | None, request_id: str, now: datetime
) -> Actor | None:
    """Return the actor of a SCIM token, an administrator without a user, and record the use.

    `address` is the client's IP address. Return None for an invalid token, or if the tenant is not
    active.
    """
    token = parse_token(BearerTokenKind.SCIM, text)
    if token is None:
        return None
    with tenant_scope(token.tenant_id):
        active_tenants = Tenant.objects.filter(id=token.tenant_id, status=TenantStatus.ACTIVE)
        row = (
            ScimToken.objects.filter(
                tenant_id=token.tenant_id, digest=token_digest(token), revoked_at=None
            )
            .order_by("id")
            .first()
        )
        if row is None or not active_tenants.exists():
            return None
        _record_use(row, now)
    return Actor(
        tenant_id=token.tenant_id,
        user_id=None,
        role=Role.ADMINISTRATOR,
        address=address,
        request_id=request_id,
        key=LookupId(f"scim:{row.id.hex[:12]}"),  # names the token in the audit log
    )


def _record_use(row: ScimToken, now: datetime) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_PRECISION)
    ScimToken.objects.filter(stale, id=row.id).update(last_used_at=now)


def _to_view(row: ScimToken) -> ScimTokenView:
    return ScimTokenView(row.id, row.name, row.created_at, row.revoked_at, row.last_used_at)
