"""The cache namespace: the part of the prefix caches that a tenant's requests can hit."""

from dataclasses import dataclass

from caret.contracts.policy import Isolation
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import Tenant
from tenants.policy.queries import find_policy
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class Namespace:
    epoch: int  # increased by each purge; part of the namespace's name
    isolation: Isolation


def read_namespace(*, actor: Actor) -> Namespace:
    """Return the tenant's cache namespace. Two queries. Raises Forbidden."""
    actor.require(Permission.READ_TENANT)
    with tenant_scope(actor.tenant_id):
        epoch = Tenant.objects.values_list("cache_epoch", flat=True).get(id=actor.tenant_id)
        policy = find_policy(tenant_id=actor.tenant_id).policy
    return Namespace(epoch, policy.isolation)
