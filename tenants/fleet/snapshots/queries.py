"""Queries of the rows that a snapshot is compiled from."""

from dataclasses import replace
from datetime import datetime

from django.conf import settings

from caret.contracts.api_key import KeyKind
from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.ids import KeyId, LookupId, TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.errors import NotFound
from tenants.billing.budgets.queries import read_spending_limits
from tenants.fleet.pools.assignments import list_assignments
from tenants.fleet.snapshots.compiler import (
    PoolsAndModels,
    SnapshotKeyRow,
    TenantRow,
    compile_snapshot,
)
from tenants.fleet.snapshots.overrides import NO_OVERRIDES, OverrideAssignment, assign_overrides
from tenants.fleet.snapshots.platform_limits import PlatformLimits, apply_platform_limits
from tenants.identity.api_keys.key_secrets import KeySecret, list_secrets
from tenants.identity.api_keys.scopes import list_modes, parse_scopes
from tenants.identity.trials import compute_trial_end
from tenants.models import ApiKey, Tenant
from tenants.policy.availability.model_offers import read_model_pools
from tenants.policy.overrides.queries import SubjectKind, has_overrides, read_overrides
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.queries import find_all_effective_consents


def read_snapshot(*, tenant_id: TenantId, now: datetime) -> TenantSnapshot:
    """Return the tenant's current snapshot.

    Seven queries. Policy overrides add four, and hard budgets three. A model catalogue and content
    capture each add two. Raises NotFound.
    """
    with tenant_scope(tenant_id):
        # The version is read before the contents. If a change is committed in between, the old
        # version gets the new contents, and the change's own publication repairs this. If the
        # contents were read first, the new version would keep the old contents.
        row, platform_limits = _read_tenant_row(tenant_id)
        policy = apply_platform_limits(load_active_policy(tenant_id=tenant_id), platform_limits)
        consents = find_all_effective_consents(tenant_id=tenant_id, policy=policy)
        keys = [
            _build_key_row(key, secret, keeps_content=str(key.owner_id) in consents)
            for key in ApiKey.objects.filter(tenant_id=tenant_id)
            for secret in list_secrets(key)
        ]
        spending = read_spending_limits(tenant_id, now=now)
        assignment = _read_override_assignment(tenant_id)
        row = replace(row, serving=_read_pools_and_models(tenant_id, now))
    return compile_snapshot(
        tenant=row, policy=policy, keys=keys, now=now, spending=spending, assignment=assignment
    )


def _read_pools_and_models(tenant_id: TenantId, now: datetime) -> PoolsAndModels:
    pools: dict[Tier, dict[str, str]] = {}
    assignments = list_assignments(tenant_id=tenant_id)
    for assignment in assignments:
        pools.setdefault(assignment.tier, {})[assignment.language] = assignment.pool
    return PoolsAndModels(
        pools=pools,
        dedicated=frozenset(
            assignment.pool for assignment in assignments if assignment.is_dedicated
        ),
        models=read_model_pools(tenant_id=tenant_id, on=utc_day(now)),
    )


def _read_override_assignment(tenant_id: TenantId) -> OverrideAssignment:
    if not has_overrides(tenant_id=tenant_id):
        return NO_OVERRIDES
    overrides = read_overrides(tenant_id=tenant_id)
    user_subjects = {
        UserId(str(subject.id)) for subject in overrides.all if subject.kind is SubjectKind.USER
    }
    users = {*overrides.teams_of, *user_subjects}
    overrides_by_user = {
        user_id: [in_force.override for in_force in overrides.for_user(user_id)]
        for user_id in users
    }
    return assign_overrides(overrides_by_user)


def _read_tenant_row(tenant_id: TenantId) -> tuple[TenantRow, PlatformLimits]:
    try:
        tenant = Tenant.objects.get(id=tenant_id)
    except Tenant.DoesNotExist as error:
        raise NotFound("This tenant does not exist.") from error
    row = TenantRow(
        tenant_id=tenant_id,
        slug=tenant.slug,
        version=tenant.snapshot_version,
        status=TenantStatus(tenant.status),
        cache_epoch=tenant.cache_epoch,
        region=tenant.region if settings.PIN_TENANTS else None,
        trial_ends_at=None
        if tenant.trial_ends_on is None
        else compute_trial_end(tenant.trial_ends_on),
    )
    return row, PlatformLimits(tenant.max_concurrent_completions, tenant.max_requests_per_minute)


def _build_key_row(key: ApiKey, secret: KeySecret, *, keeps_content: bool) -> SnapshotKeyRow:
    return SnapshotKeyRow(
        key_id=KeyId(str(key.id)),
        lookup_id=LookupId(key.lookup_id),
        digest=secret.digest,
        pepper_version=secret.pepper_version,
        kind=KeyKind(key.kind),
        owner_id=None if key.owner_id is None else UserId(str(key.owner_id)),
        expires_at=secret.expires_at,
        revoked_at=key.revoked_at,
        networks=tuple(key.networks),
        modes=list_modes(parse_scopes(key.scopes)),
        keeps_content=keeps_content,
    )
