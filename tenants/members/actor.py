"""Who does something, for whom, from where: what each operation and query is given."""

from dataclasses import dataclass

from caret.foundation.ids import TenantId, UserId
from tenants.errors import Forbidden
from tenants.members.permissions import Permission, Role, allows


@dataclass(frozen=True, slots=True)
class Actor:
    tenant_id: TenantId
    user_id: UserId | None  # None: the platform itself
    role: Role
    address: str | None  # None: not over the network
    request_id: str  # "" when not over HTTP

    def may(self, permission: Permission) -> bool:
        return allows(self.role, permission)

    def require(self, permission: Permission) -> None:
        """Raises Forbidden."""
        if not self.may(permission):
            raise Forbidden(f"The role {self.role.value} may not do this ({permission.value}).")

    def require_platform(self) -> None:
        """Raises Forbidden for a tenant's own people, whatever their role."""
        if self.user_id is not None:
            raise Forbidden("Only the platform's operator may do this.")


def platform_actor(tenant_id: TenantId) -> Actor:
    """For what an operator does on the command line."""
    return Actor(tenant_id=tenant_id, user_id=None, role=Role.OWNER, address=None, request_id="")
