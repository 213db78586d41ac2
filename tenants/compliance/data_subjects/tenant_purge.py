"""Purge of a shredded tenant's remaining data.

The purge deletes settings, rollups, the retrieval index, stored objects and keys in Redis. It
anonymizes API keys, invitations, alert deliveries and SCIM tokens, and replaces the policy by the
default. Each step can be repeated.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import redis
from django.db.models import Max, Model, QuerySet

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.base.validation.email_domains import ANONYMOUS_DOMAIN
from tenants.billing.budgets.alert_delivery import anonymize_recipients
from tenants.compliance.data_subjects import anonymization
from tenants.models import (
    AlertDelivery,
    ApiKey,
    AuditSink,
    Budget,
    DirtyHour,
    Domain,
    Erasure,
    IdempotencyRecord,
    IdentityProvider,
    Invitation,
    LatencyDay,
    LatencyHour,
    PolicyOverrideVersion,
    PolicyVersion,
    PoolAssignment,
    RetrievalChunk,
    ScimGroup,
    ScimToken,
    ScimUser,
    Team,
    TeamMembership,
    UsageDay,
    UsageHour,
    VerifiedDomain,
)
from tenants.policy.document import DEFAULT_POLICY
from tenants.policy.operations import insert_version
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.content_capture import object_store
from tenants.privacy.content_capture.erasure import request_erasure_of_all_content
from tenants.security.authorization.actor import build_system_actor
from tenants.usage.ingestion.redis_stream import delete_rejected_records

BATCH: Final = 1_000  # rows in one transaction
_SCAN: Final = 1_000  # Redis keys that are examined in one step of a scan
_SHREDDED: Final = "The tenant was shredded."  # the reason of the default policy's version
# Called in each transaction with the numbers of deleted or anonymized rows by table.
AddCounts = Callable[[dict[str, int]], None]
# In an order in which no row refers to a deleted one.
_TABLES: Final[tuple[type[Model], ...]] = (
    RetrievalChunk,
    IdempotencyRecord,
    ScimUser,
    ScimGroup,
    TeamMembership,
    Team,
    Budget,
    AuditSink,
    IdentityProvider,
    Domain,
    PolicyOverrideVersion,
    UsageHour,
    UsageDay,
    LatencyHour,
    LatencyDay,
    DirtyHour,
)


def purge_tenant(row: Erasure, *, now: datetime, add_counts: AddCounts) -> None:
    """Purge the tenant. Raises redis.RedisError, and errors of the object store."""
    tenant_id = TenantId(str(row.tenant_id))
    for model in _TABLES:
        _purge_table(tenant_id, model, add_counts)
    with tenant_scope(tenant_id):
        # This locks the tenant. After the commit, a snapshot without any data is published.
        mark_snapshot_stale(tenant_id=tenant_id)
        ScimToken.objects.filter(tenant_id=tenant_id, revoked_at=None).update(revoked_at=now)
        add_counts(_anonymize_rows(tenant_id, now))
        add_counts({PolicyVersion._meta.db_table: _reset_policy(tenant_id, now)})
        request_erasure_of_all_content(tenant_id=tenant_id, now=now)
    VerifiedDomain.objects.filter(holder_id=UUID(tenant_id)).delete()
    PoolAssignment.objects.filter(holder_id=UUID(tenant_id)).delete()
    _purge_store(tenant_id, add_counts)
    _purge_redis(connect_to_redis(), tenant_id)


def _purge_store(tenant_id: TenantId, add_counts: AddCounts) -> None:
    """Delete the tenant's objects in the object store.

    If the process is killed during this step, the next attempt counts only the objects that are
    left.
    """
    num_objects = object_store.delete_all_objects(tenant_id)
    with tenant_scope(tenant_id):
        add_counts({"objects": num_objects})


def _purge_table(tenant_id: TenantId, model: type[Model], add_counts: AddCounts) -> None:
    while True:
        with tenant_scope(tenant_id):
            rows: QuerySet[Any] = model._default_manager.filter(tenant_id=tenant_id)
            batch = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
            if not batch:
                return
            rows.filter(pk__in=batch).delete()
            add_counts({model._meta.db_table: len(batch)})


def _anonymize_rows(tenant_id: TenantId, now: datetime) -> dict[str, int]:
    """Anonymize the rows that must stay, and return their number by table."""
    keys = ApiKey.objects.filter(tenant_id=tenant_id).exclude(name="")
    invitations = Invitation.objects.filter(tenant_id=tenant_id)
    named_invitations = invitations.exclude(email__endswith=ANONYMOUS_DOMAIN)
    deliveries = AlertDelivery.objects.filter(tenant_id=tenant_id)
    tokens = ScimToken.objects.filter(tenant_id=tenant_id)
    return {
        ApiKey._meta.db_table: anonymization.anonymize_keys(keys, now),
        Invitation._meta.db_table: anonymization.anonymize_invitations(named_invitations, now),
        AlertDelivery._meta.db_table: anonymize_recipients(
            deliveries.exclude(address__endswith=ANONYMOUS_DOMAIN)
        ),
        ScimToken._meta.db_table: tokens.exclude(name="").update(name=""),
    }


def _reset_policy(tenant_id: TenantId, now: datetime) -> int:
    """Replace all versions of the policy by the default, and return the number of deleted ones.

    Without a policy there would be no snapshot, and gateways would keep the last one.
    """
    versions = PolicyVersion.objects.filter(tenant_id=tenant_id)
    # Only the version that this function inserts has this reason and no author.
    if not versions.exclude(reason=_SHREDDED, author_id=None).exists():
        return 0  # an earlier attempt has deleted the others
    last: int = versions.aggregate(last=Max("version"))["last"]
    insert_version(
        actor=build_system_actor(tenant_id),
        policy=DEFAULT_POLICY,
        version=last + 1,
        reason=_SHREDDED,
        now=now,
    )
    deleted, _ = versions.filter(version__lte=last).delete()
    return deleted


def _purge_redis(connection: redis.Redis, tenant_id: TenantId) -> None:
    """Delete the tenant's keys in Redis; each contains the tenant's ID.

    The snapshot has no Redis key of its own, and stays. It is already empty. A missing snapshot
    would tell gateways that Redis has lost its data. Messages in streams are encrypted, and are
    consumed or rejected within minutes.
    """
    for key in connection.scan_iter(match=f"*{tenant_id}*", count=_SCAN):
        connection.delete(key)
    delete_rejected_records(connection, tenant_id)
