"""The actor of an operation or query: a user, a key, an operator or the platform itself."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext_noop

from caret.contracts.policy import Mode
from caret.foundation.ids import LookupId, TenantId, UserId
from tenants.base.errors import Forbidden
from tenants.base.permissions import ALLOWED_WHILE_CLOSING, Permission, Role, role_has_permission

_CLOSING: Final = gettext_noop(
    "This tenant is closing. Only reading, exports and erasures are possible."
)


class ActorKind(StrEnum):
    """The kind of an actor, as audit entries name it."""

    USER = "user"
    KEY = "key"  # an API key, with or without an owner, or a SCIM token
    # An operator of the platform, on the operators' pages or over the platform API.
    OPERATOR = "operator"
    PLATFORM = "platform"  # Caret itself, for example in a task or a command


@dataclass(frozen=True, slots=True)
class KeyGrant:
    """The permissions and limits of an API key."""

    permissions: frozenset[Permission]
    modes: frozenset[Mode]  # completion modes that the key allows at the gateways
    networks: tuple[str, ...]  # networks that the key may be used from; empty: any
    expires_at: datetime | None  # None: never
    issued_by: UserId | None = None  # the user who was shown the key's text; None: unknown
    # The request contains the old text of a rotated key. It stays valid for a limited time.
    is_superseded: bool = False


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """An operator of the platform. An operator never has a tenant's permissions."""

    # The name with which the operator signs in; for a key of the platform API, "key:" and its
    # lookup ID.
    handle: str
    can_change: bool  # False: read-only


@dataclass(frozen=True, slots=True)
class Actor:
    tenant_id: TenantId
    user_id: UserId | None  # None: the platform, an operator, or a key without an owner
    role: Role  # for a key: the upper bound of its permissions
    address: str | None  # the client's IP address; None: not a network request
    request_id: str  # "" outside HTTP
    # The credential of the request: an API key, or a SCIM token ("scim:..."). None: neither.
    key: LookupId | None = None
    is_closing: bool = False  # the tenant is closing: it allows reading, export and erasure only
    grant: KeyGrant | None = None  # of the API key; None: no API key
    operator: OperatorIdentity | None = None

    @property
    def kind(self) -> ActorKind:
        if self.operator is not None:
            return ActorKind.OPERATOR
        if self.key is not None:
            return ActorKind.KEY
        return ActorKind.PLATFORM if self.user_id is None else ActorKind.USER

    @property
    def accountable_user_id(self) -> UserId | None:
        """The user who is responsible for the action.

        None: the platform, an operator, a SCIM token, or an API key whose issuer is unknown.
        """
        return self.user_id if self.grant is None else self.grant.issued_by

    @property
    def credential_name(self) -> str:
        """The credential that audit entries name.

        A key's lookup ID, "scim:...", or "operator:..." with the handle; "": a user's session, or
        the platform.
        """
        if self.operator is not None:
            return f"operator:{self.operator.handle}"
        return self.key or ""

    @property
    def rate_limit_key(self) -> str:
        """The identity that rate limits count and that stored idempotent responses belong to."""
        if self.operator is not None:
            return self.credential_name
        if self.key is not None:
            return f"key:{self.key}"
        return "platform" if self.user_id is None else f"user:{self.user_id}"

    @property
    def authority(self) -> str:
        """The facts that decide the permissions of a user or key in the tenant, as one text.

        Equal texts mean equal permissions.
        """
        parts: list[object] = [self.role, self.is_closing]
        if (grant := self.grant) is not None:
            parts += [sorted(grant.permissions), sorted(grant.modes), sorted(grant.networks)]
            parts += [grant.expires_at, grant.is_superseded]
        return "|".join(str(part) for part in parts)

    def has_permission(self, permission: Permission) -> bool:
        if self.operator is not None:
            return False
        is_granted = self.grant is None or permission in self.grant.permissions
        return (
            is_granted
            and role_has_permission(self.role, permission)
            and not self._is_blocked_by_closing(permission)
        )

    def require(self, permission: Permission) -> None:
        """Check that the actor has the permission. Raises Forbidden."""
        if self.has_permission(permission):
            return
        if self.operator is not None:
            raise Forbidden("Operators cannot do this. Only the tenant can.")
        if self._is_blocked_by_closing(permission):
            raise Forbidden(_CLOSING)
        if self.grant is not None:
            raise Forbidden(
                "This key does not have the required scope ({permission}).",
                permission=permission.value,
            )
        raise Forbidden(
            "The role {role} does not allow this ({permission}).",
            role=self.role,
            permission=permission.value,
        )

    def require_open(self) -> None:
        """Check that the tenant is not closing. Raises Forbidden."""
        if self.is_closing:
            raise Forbidden(_CLOSING)

    def _is_blocked_by_closing(self, permission: Permission) -> bool:
        return self.is_closing and permission not in ALLOWED_WHILE_CLOSING

    def require_platform(self) -> None:
        """Check that the actor is the platform itself. Raises Forbidden."""
        if self.kind is not ActorKind.PLATFORM:
            raise Forbidden(
                "Only the platform itself can do this, for example a command on the command line."
            )

    def require_operator(self) -> None:
        """Check that the actor is the platform or an operator who may write. Raises Forbidden."""
        is_operator = self.operator is not None and self.operator.can_change
        if self.kind is not ActorKind.PLATFORM and not is_operator:
            raise Forbidden("Only an operator who may make changes can do this.")


def build_system_actor(tenant_id: TenantId) -> Actor:
    """Return the actor for tasks, and for commands that an operator runs on the command line.

    It has all permissions of an owner.
    """
    return Actor(tenant_id=tenant_id, user_id=None, role=Role.OWNER, address=None, request_id="")
