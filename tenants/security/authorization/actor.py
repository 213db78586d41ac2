"""Who does something, for whom, from where: what each operation and query is given."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext_noop

from caret.contracts.policy import Mode
from caret.foundation.ids import LookupId, TenantId, UserId
from tenants.base.errors import Forbidden
from tenants.base.permissions import ALLOWED_WHILE_CLOSING, Permission, Role, role_has_permission

_CLOSING: Final = gettext_noop("This tenant is closing. Only exports and erasures are possible.")


class ActorKind(StrEnum):
    """As audit entries name it."""

    USER = "user"
    KEY = "key"
    OPERATOR = "operator"  # of the platform, on his own pages
    PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class KeyGrant:
    """What a key is good for."""

    permissions: frozenset[Permission]
    modes: frozenset[Mode]  # that it may ask for at the gateways
    networks: tuple[str, ...]  # from which it may be used; empty: from anywhere
    expires_at: datetime | None  # None: never
    issued_by: UserId | None = None  # who was shown its text; None: not known
    is_superseded: bool = False  # by the old text of a rotated key: good for a while, no longer


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """One of the platform's operators: no tenant's permission is ever his."""

    handle: str
    may_change: bool  # a tenant; else he only looks


@dataclass(frozen=True, slots=True)
class Actor:
    tenant_id: TenantId
    user_id: UserId | None  # None: the platform, one of its operators, or a key that is nobody's
    role: Role  # of a key: what its permissions are bounded by
    address: str | None  # None: not over the network
    request_id: str  # "" when not over HTTP
    key: LookupId | None = None  # the API key that was presented; None: none was
    is_closing: bool = False  # the tenant: then little else than export and erasure is left
    grant: KeyGrant | None = None  # of that key; None for who is no key
    operator: OperatorIdentity | None = None

    @property
    def kind(self) -> ActorKind:
        if self.operator is not None:
            return ActorKind.OPERATOR
        if self.key is not None:
            return ActorKind.KEY
        return ActorKind.PLATFORM if self.user_id is None else ActorKind.USER

    @property
    def answerable(self) -> UserId | None:
        """The person who answers for what is done; None: the platform, or a key of nobody known."""
        return self.user_id if self.grant is None else self.grant.issued_by

    @property
    def signature(self) -> str:
        """By what he did it, as audit entries name it; "": as himself."""
        if self.operator is not None:
            return f"operator:{self.operator.handle}"
        return self.key or ""

    @property
    def caller(self) -> str:
        """Whom limits count, and to whom kept answers belong."""
        if self.operator is not None:
            return self.signature
        if self.key is not None:
            return f"key:{self.key}"
        return "platform" if self.user_id is None else f"user:{self.user_id}"

    @property
    def authority(self) -> str:
        """All that decides what he may do: of two actors the same when they may do the same."""
        parts: list[object] = [self.role, self.is_closing]
        if (grant := self.grant) is not None:
            parts += [sorted(grant.permissions), sorted(grant.modes), sorted(grant.networks)]
            parts += [grant.expires_at, grant.is_superseded]
        return "|".join(str(part) for part in parts)

    def may(self, permission: Permission) -> bool:
        if self.operator is not None:
            return False
        is_granted = self.grant is None or permission in self.grant.permissions
        return (
            is_granted and role_has_permission(self.role, permission) and self._is_left(permission)
        )

    def require(self, permission: Permission) -> None:
        """Raises Forbidden."""
        if self.may(permission):
            return
        if self.operator is not None:
            raise Forbidden("Operators cannot do this. It is up to the tenant.")
        if not self._is_left(permission):
            raise Forbidden(_CLOSING)
        if self.grant is not None:
            raise Forbidden(
                "This key does not have the required scope ({permission}).",
                permission=permission.value,
            )
        raise Forbidden(
            "The role {role} does not allow this ({permission}).",
            role=self.role.value,
            permission=permission.value,
        )

    def require_open(self) -> None:
        """Raises Forbidden for whatever would change a tenant that is closing."""
        if self.is_closing:
            raise Forbidden(_CLOSING)

    def _is_left(self, permission: Permission) -> bool:
        return not self.is_closing or permission in ALLOWED_WHILE_CLOSING

    def require_platform(self) -> None:
        """Raises Forbidden for a tenant's own people and keys, whatever their role."""
        if self.kind is not ActorKind.PLATFORM:
            raise Forbidden("Only the operator of the platform can do this.")

    def require_operator(self) -> None:
        """The platform itself, or one of its operators who may change tenants. Raises Forbidden."""
        if self.operator is None or not self.operator.may_change:
            self.require_platform()


def system_actor(tenant_id: TenantId) -> Actor:
    """For what an operator does on the command line."""
    return Actor(tenant_id=tenant_id, user_id=None, role=Role.OWNER, address=None, request_id="")
