"""Revocation of idle keys, for tenants whose policy sets a number of days."""

from datetime import datetime, timedelta
from typing import Final

from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.api_keys.operations import revoke_key
from tenants.models import ApiKey
from tenants.models.api_key import idle_among
from tenants.policy.queries import find_policy
from tenants.security.authorization.actor import system_actor
from tenants.security.authorization.directory import list_tenants

_MAX_AT_ONCE: Final = 500  # a transaction each; the next run continues


def revoke_all_idle_keys(*, now: datetime) -> None:
    """Revoke the idle keys of every tenant."""
    for tenant_id in list_tenants().values():
        revoke_idle_keys(tenant_id=tenant_id, now=now)


def revoke_idle_keys(*, tenant_id: TenantId, now: datetime) -> list[LookupId]:
    """Revoke the idle keys of a tenant and return their lookup IDs.

    Does nothing if the policy sets no number of days. A second run finds none.
    """
    days = find_policy(tenant_id=tenant_id).policy.revoke_idle_keys_after_days
    if days is None:
        return []
    with tenant_scope(tenant_id):
        keys = ApiKey.objects.filter(tenant_id=tenant_id)
        idle = idle_among(keys, unused_for=timedelta(days=days), now=now).order_by("id")
        found = [LookupId(each) for each in idle.values_list("lookup_id", flat=True)[:_MAX_AT_ONCE]]
    for lookup_id in found:
        reason = f"Unused for {days} days, as the policy has it."
        revoke_key(actor=system_actor(tenant_id), lookup_id=lookup_id, reason=reason, now=now)
    return found
