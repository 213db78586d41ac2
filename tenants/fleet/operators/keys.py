"""Operator keys: bearer keys of provisioning scripts for the platform API.

They have the format of tenants' keys (caret.contracts.api_key) and belong to no tenant. They are
created on the command line only and always expire.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from caret.contracts.api_key import OPERATOR_KIND, generate_key, parse_key
from caret.foundation.ids import LookupId, TenantId
from tenants.base.errors import Forbidden, InvalidValue, NotFound, Unauthenticated
from tenants.base.operator_roles import OperatorScope
from tenants.base.permissions import Role
from tenants.base.validation.text import validate_text
from tenants.identity.api_keys.key_secrets import compute_key_digest, has_digest
from tenants.models import OperatorKey
from tenants.security.authorization.actor import Actor, OperatorIdentity

MAX_LIFETIME_DAYS: Final = 366
MAX_NAME_CHARS: Final = 120
_PEPPER_VERSION: Final = 1  # of the secret in the digests of new keys (compute_key_digest)
_NO_DIGEST: Final = bytes(32)  # compared for unknown keys; matches no key
_PREFIX: Final = f"cpk_{OPERATOR_KIND}_"  # of the texts of operator keys
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OperatorKeyView:
    lookup_id: LookupId
    name: str
    scopes: frozenset[OperatorScope]
    expires_at: datetime
    revoked_at: datetime | None  # None: not revoked

    @property
    def caller(self) -> str:
        """The key's name in audit logs and rate limits. No operator's handle has a colon."""
        return f"key:{self.lookup_id}"

    def require(self, scope: OperatorScope) -> None:
        """Check that the key has the scope. Raises Forbidden."""
        if scope not in self.scopes:
            raise Forbidden(
                "This key does not have the required scope ({permission}).", permission=scope.value
            )


@dataclass(frozen=True, slots=True)
class CreatedOperatorKey:
    key: OperatorKeyView
    text: str = field(repr=False)  # the secret key, shown once


def create_operator_key(
    *, name: str, scopes: Iterable[OperatorScope], days: int, now: datetime
) -> CreatedOperatorKey:
    """Create a key that expires after `days` days. Raises InvalidValue."""
    validate_text("name", name)
    if not 1 <= len(name.strip()) <= MAX_NAME_CHARS:
        raise InvalidValue("name", "Enter 1 to {most} characters.", most=MAX_NAME_CHARS)
    if not 1 <= days <= MAX_LIFETIME_DAYS:
        raise InvalidValue("days", "Enter 1 to {most} days.", most=MAX_LIFETIME_DAYS)
    generated = generate_key(OPERATOR_KIND)
    row = OperatorKey.objects.create(
        lookup_id=generated.lookup_id,
        digest=compute_key_digest(generated, pepper_version=_PEPPER_VERSION),
        pepper_version=_PEPPER_VERSION,
        name=name.strip(),
        scopes=sorted(set(scopes)),
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    logger.info("operator_key.created", lookup_id=row.lookup_id, scopes=row.scopes)
    return CreatedOperatorKey(_to_view(row), generated.text)


def revoke_operator_key(*, lookup_id: str, now: datetime) -> None:
    """Revoke a key at once. Nothing changes if it was revoked before.

    Raises InvalidValue, NotFound.
    """
    validate_text("lookup_id", lookup_id)
    keys = OperatorKey.objects.filter(lookup_id=lookup_id)
    if keys.filter(revoked_at=None).update(revoked_at=now):
        logger.info("operator_key.revoked", lookup_id=lookup_id)
    elif not keys.exists():
        raise NotFound("The operator key {lookup_id} does not exist.", lookup_id=lookup_id)


def list_operator_keys() -> list[OperatorKeyView]:
    """Return all keys, expired and revoked ones included, newest first."""
    return [_to_view(row) for row in OperatorKey.objects.order_by("-created_at", "id")]


def authenticate_operator_key(*, text: str, now: datetime) -> OperatorKeyView:
    """Return the key that a script presents. One query. Raises Unauthenticated."""
    key = parse_key(text)
    if key is None:
        raise _make_invalid_key_error()
    if not text.startswith(_PREFIX):
        raise Unauthenticated("wrong_api_key_kind", "The platform API accepts only operator keys.")
    row = OperatorKey.objects.filter(lookup_id=key.lookup_id).order_by("id").first()
    digest = _NO_DIGEST if row is None else bytes(row.digest)
    pepper_version = _PEPPER_VERSION if row is None else row.pepper_version
    # A digest is compared even if the lookup ID is unknown. Otherwise the response time would
    # reveal which lookup IDs exist.
    if not has_digest(key, digest=digest, pepper_version=pepper_version) or row is None:
        raise _make_invalid_key_error()
    if row.revoked_at is not None:
        raise Unauthenticated("revoked_api_key", "This operator key was revoked.")
    if row.expires_at <= now:
        raise Unauthenticated("expired_api_key", "This operator key has expired.")
    return _to_view(row)


def build_operator_key_actor(
    key: OperatorKeyView, *, tenant_id: TenantId, address: str, request_id: str
) -> Actor:
    """Return the key as an actor, who may do only what operators may do in a tenant.

    The actor may change something only if the key has the scope WRITE_TENANTS. `address` is the
    caller's IP address.
    """
    can_change = OperatorScope.WRITE_TENANTS in key.scopes
    return Actor(
        tenant_id=tenant_id,
        user_id=None,
        role=Role.AUDITOR,  # grants nothing: an actor with an operator has no tenant permissions
        address=address,
        request_id=request_id,
        operator=OperatorIdentity(key.caller, can_change=can_change),
    )


def _make_invalid_key_error() -> Unauthenticated:
    return Unauthenticated("invalid_api_key", "This is not a valid operator key.")


def _to_view(row: OperatorKey) -> OperatorKeyView:
    return OperatorKeyView(
        lookup_id=LookupId(row.lookup_id),
        name=row.name,
        scopes=frozenset(OperatorScope(scope) for scope in row.scopes),
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
