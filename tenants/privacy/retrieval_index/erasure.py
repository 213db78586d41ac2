"""Erasure of indexed text that is no longer allowed or no longer used."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import QuerySet

from caret.contracts.policy import TenantPolicy
from caret.contracts.retrieval import RetrievalScope
from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import RetrievalChunk, Tenant
from tenants.policy.data_classes import DataClass
from tenants.policy.operations import PolicyChange
from tenants.privacy.retention.rules_in_force import load_hold_periods, load_rule
from tenants.privacy.retention.tables import RETENTION_TABLES
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.privacy.retrieval_index.indexing_rules import IndexingRules
from tenants.privacy.retrieval_index.queries import find_indexing_rules

KEEP_UNUSED: Final = timedelta(days=30)  # since a chunk's last use; a retention rule may be longer

logger = structlog.get_logger(__name__)


def lock_tenant(tenant_id: TenantId) -> None:
    """Lock the tenant's row: its policy and status cannot change until the transaction ends."""
    Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)


def erase_disallowed(*, tenant_id: TenantId, policy: TenantPolicy, status: TenantStatus) -> int:
    """Erase the chunks that this policy and status do not allow, and return how many.

    Call this in the transaction that puts the policy and status in force, with the tenant's row
    locked. If the policy allows retrieval, this decrypts the names of all the tenant's chunks, in
    about 10 microseconds each.
    """
    if not policy.retrieval or status is not TenantStatus.ACTIVE:
        return erase_index(tenant_id=tenant_id)
    is_allowed = _make_filter(tenant_id, IndexingRules(status=status, policy=policy))
    with tenant_scope(tenant_id):
        rows = RetrievalChunk.objects.filter(tenant_id=tenant_id)
        names = rows.values_list("id", "holder", "sealed_name").iterator()
        disallowed_ids = [
            row_id for row_id, holder, name in names if not is_allowed(row_id, holder, bytes(name))
        ]
        return _erase_rows(tenant_id, rows.filter(id__in=disallowed_ids), reason="not allowed")


def erase_disallowed_by_policy(change: PolicyChange) -> None:
    """Erase the indexed text that the new policy no longer allows.

    An effect of `set_policy`, which calls it in the transaction that saves the policy, with the
    tenant's row locked.
    """
    tenant_id = change.actor.tenant_id
    status = TenantStatus(Tenant.objects.get(id=tenant_id).status)
    erase_disallowed(tenant_id=tenant_id, policy=change.new, status=status)


def erase_index(*, tenant_id: TenantId) -> int:
    """Erase all chunks of a tenant that may have no index, and return how many."""
    with tenant_scope(tenant_id):
        rows = RetrievalChunk.objects.filter(tenant_id=tenant_id)
        return _erase_rows(tenant_id, rows, reason="not allowed")


def evict_least_recently_used(rows: QuerySet[RetrievalChunk], *, keep: int) -> None:
    """Delete all rows except the `keep` most recently used ones."""
    surplus = rows.order_by("-used_at", "-id").values_list("id", flat=True)[keep:]
    if surplus_ids := list(surplus):
        rows.filter(id__in=surplus_ids).delete()


def clean_up_index(*, now: datetime) -> int:
    """Erase chunks of all tenants that are unused or not allowed, and return how many.

    A chunk is unused if it was last used more than KEEP_UNUSED ago. If the tenant's retention
    period is longer, it applies instead. A legal hold keeps unused chunks. Chunks that the policy
    does not allow can come from a restored backup.
    """
    return sum(
        _clean_up_index_of_tenant(TenantId(str(tenant_id)), now=now)
        for tenant_id in Tenant.objects.values_list("id", flat=True).iterator()
    )


def _clean_up_index_of_tenant(tenant_id: TenantId, *, now: datetime) -> int:
    with tenant_scope(tenant_id):
        rows = RetrievalChunk.objects.filter(tenant_id=tenant_id)
        if not rows.exists():
            return 0
        lock_tenant(tenant_id)
        rule = load_rule(DataClass.RETRIEVAL, tenant_id=tenant_id)
        # A purge enforces a rule that is shorter than KEEP_UNUSED, and issues a certificate.
        unused = rows.filter(used_at__lt=min(now - KEEP_UNUSED, rule.compute_cutoff(now)))
        (table,) = RETENTION_TABLES[DataClass.RETRIEVAL]
        erasable = table.exclude_held(unused, load_hold_periods(tenant_id=tenant_id))
        num_erased = _erase_rows(tenant_id, erasable, reason="unused")
        rules = find_indexing_rules(tenant_id=tenant_id)
        return num_erased + erase_disallowed(
            tenant_id=tenant_id, policy=rules.policy, status=rules.status
        )


def _make_filter(tenant_id: TenantId, rules: IndexingRules) -> Callable[[UUID, str, bytes], bool]:
    """Return a function that takes a chunk's ID, holder and encrypted name.

    It returns whether the rules allow the chunk's file.
    """

    # The holder of a chunk is the whole tenant ("") or, in strict isolation, a user or service key.
    # Each holder has its own encryption key. Deriving it takes longer than decrypting a name.
    @cache
    def get_cipher(holder: str) -> ChunkCipher:
        return ChunkCipher(settings.ROOT_SECRET, tenant_id=tenant_id, holder=holder)

    def is_allowed(row_id: UUID, holder: str, sealed_name: bytes) -> bool:
        try:
            repository, path = get_cipher(holder).open_name(row_id, sealed_name)
        except DecryptionFailed:
            return False  # a chunk that cannot be checked is erased
        return rules.allows_file(RetrievalScope(holder=holder, repository=repository), path)

    return is_allowed


def _erase_rows(tenant_id: TenantId, rows: QuerySet[RetrievalChunk], *, reason: str) -> int:
    num_erased, _ = rows.delete()
    if num_erased:
        logger.info("retrieval.erased", tenant_id=tenant_id, chunks=num_erased, reason=reason)
    return num_erased
