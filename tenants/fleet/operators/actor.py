"""An operator as the actor of an operation on a tenant."""

from caret.foundation.ids import TenantId
from tenants.base.permissions import Role
from tenants.fleet.operators.accounts import OperatorView
from tenants.security.authorization.actor import Actor, OperatorIdentity


def operator_actor(
    operator: OperatorView, *, tenant_id: TenantId, address: str, request_id: str
) -> Actor:
    """Return the operator's actor. It has no role's permissions, only those of operators."""
    return Actor(
        tenant_id=tenant_id,
        user_id=None,
        role=Role.AUDITOR,
        address=address,
        request_id=request_id,
        operator=OperatorIdentity(operator.handle, can_change=operator.can_change),
    )
