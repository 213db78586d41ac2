"""Writes policies: a change is a new version with a reason, never an edit."""

from datetime import datetime

from caret.contracts.policy import TenantPolicy
from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue, VersionConflict
from tenants.base.permissions import Permission
from tenants.base.text_validation import MAX_REASON_CHARS, parse_reason
from tenants.fleet.snapshots.publisher import mark_snapshot_stale
from tenants.models import PolicyVersion, Tenant
from tenants.policy.document import read_policy, write_policy
from tenants.policy.queries import PolicyInForce, find_policy
from tenants.privacy.consent_lifecycle import record_tenant_consent
from tenants.privacy.retrieval_index.erasure import erase_disallowed
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor


def set_policy(
    *, actor: Actor, document: object, reason: str, now: datetime, replaces: int | None = None
) -> PolicyInForce:
    """Puts a new policy in force; gateways know it at once, and what it no longer lets be kept for
    retrieval is erased with it.

    `replaces` is the version that the author has seen; None: whichever is in force.
    Raises Forbidden, Invalid, and Outdated when another one is in force by now.
    """
    actor.require(Permission.WRITE_POLICY)
    policy = read_policy(document)
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        # Locks the tenant first, so that two changes at once are two versions one after the other.
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        held = find_policy(tenant_id=actor.tenant_id)
        if replaces not in (None, held.version):
            raise VersionConflict(held=held.version, replaced=replaces)
        insert_version(actor=actor, policy=policy, version=held.version + 1, reason=reason, now=now)
        status = TenantStatus(Tenant.objects.get(id=actor.tenant_id).status)
        erase_disallowed(tenant_id=actor.tenant_id, policy=policy, status=status)
        record_tenant_consent(
            actor=actor,
            change=(held.policy.telemetry, policy.telemetry),
            policy_version=held.version + 1,
            now=now,
        )
        record_change(
            actor=actor,
            action="policy.changed",
            target=f"policy:{held.version + 1}",
            change=(_facts(held.policy), _facts(policy)),
            reason=reason,
            now=now,
        )
        return find_policy(tenant_id=actor.tenant_id)


def insert_version(
    *, actor: Actor, policy: TenantPolicy, version: int, reason: str, now: datetime
) -> None:
    """The row alone: for set_policy, and for a new tenant's first policy."""
    PolicyVersion.objects.create(
        tenant_id=actor.tenant_id,
        version=version,
        document=write_policy(policy),
        author_id=actor.user_id,
        author_key=actor.key or "",
        reason=reason,
        created_at=now,
    )


def require_reason(text: str) -> str:
    """Raises Invalid."""
    reason = parse_reason(text)
    if not reason:
        raise InvalidValue("reason", "Say why, in 1 to {most} characters.", most=MAX_REASON_CHARS)
    return reason


def _facts(policy: TenantPolicy) -> ChangeFields:
    return {"policy": write_policy(policy)}
