"""Hourly signatures of the chain heads of tenants whose chains have grown.

Before a head is signed, the entries since the last signed head are hashed again. If an entry or the
head was changed directly in the database, an error is logged, and the head is not signed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog

from caret.foundation.crypto.signing import SigningKeys
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.worker.failure_log import FailureLog
from tenants.models import AuditEntry, SignedAuditHead
from tenants.security.audit.hash_chain import (
    GENESIS,
    HEAD_PURPOSE,
    build_document,
    build_head_document,
    hash_document,
)
from tenants.security.audit.queries import ChainHead, find_head, read_range
from tenants.security.authorization.directory import list_tenants

logger = structlog.get_logger(__name__)


class ChainBroken(Exception):
    """The chain is broken at the entry `sequence`.

    This entry is missing, changed or inserted, or its signed head does not match. If the entries
    are in order, but the last one does not match the head at which they must end, `sequence` is one
    greater than that of the last entry.
    """

    def __init__(self, sequence: int) -> None:
        super().__init__(f"The chain breaks at entry {sequence}.")
        self.sequence = sequence


def sign_all_heads(*, keys: SigningKeys, now: datetime) -> int:
    """Sign the heads of all tenants, and return how many were signed.

    A broken chain is logged as an error and does not stop the other tenants.
    """
    num_signed = 0
    for tenant_id in list_tenants().values():
        with FailureLog("audit.not_signed", tenant_id=tenant_id):
            try:
                num_signed += sign_head(tenant_id=tenant_id, keys=keys, now=now)
            except ChainBroken as broken:
                logger.error("audit.chain_broken", tenant_id=tenant_id, sequence=broken.sequence)
    return num_signed


def sign_head(*, tenant_id: TenantId, keys: SigningKeys, now: datetime) -> bool:
    """Sign the tenant's head and store it. Return False if there was nothing to sign.

    Nothing is signed if the head is still the last signed head, or if that head was signed in this
    hour. If another run has stored the same head at the same time, the result is nevertheless True.
    Raises ChainBroken, also for another head with the sequence of the last signed one.
    """
    with tenant_scope(tenant_id):
        head = find_head(tenant_id=tenant_id)
        last = SignedAuditHead.objects.filter(tenant_id=tenant_id).order_by("-sequence").first()
    last_signed = (
        ChainHead(0, GENESIS) if last is None else ChainHead(last.sequence, bytes(last.hash))
    )
    if head == last_signed or (last is not None and _are_in_same_hour(last.signed_at, now)):
        return False
    entries = read_range(tenant_id=tenant_id, first=last_signed.sequence + 1, last=head.sequence)
    require_unbroken_chain(entries, begins=last_signed, ends=head)
    with tenant_scope(tenant_id):
        # If two concurrent runs sign the same head, the second insert changes nothing.
        SignedAuditHead.objects.bulk_create(
            [_build_signed_head(tenant_id, head, keys, now)], ignore_conflicts=True
        )
    return True


def require_unbroken_chain(
    entries: Iterable[AuditEntry], *, begins: ChainHead, ends: ChainHead
) -> None:
    """Check the entries after the head `begins`, up to the head `ends`.

    Raises ChainBroken for the first entry that is missing, changed or inserted. If all entries
    follow each other but do not end at `ends`, this is the entry after the last one. If there are
    no entries, it is the entry after `begins`.
    """
    last = begins
    for entry in entries:
        current = ChainHead(entry.sequence, bytes(entry.hash))
        follows = entry.sequence == last.sequence + 1 and bytes(entry.previous_hash) == last.hash
        if not follows or hash_document(build_document(entry)) != current.hash:
            raise ChainBroken(last.sequence + 1)
        last = current
    if last != ends:
        raise ChainBroken(last.sequence + 1)


def build_signed_document(row: SignedAuditHead) -> dict[str, Any]:
    """Return the head's document with its signature, as exports contain it."""
    head = build_head_document(
        tenant_id=row.tenant_id,
        sequence=row.sequence,
        hash=bytes(row.hash),
        signed_at=row.signed_at,
    )
    return {**head, "key_id": row.key_id, "signature": bytes(row.signature).hex()}


def _build_signed_head(
    tenant_id: TenantId, head: ChainHead, keys: SigningKeys, now: datetime
) -> SignedAuditHead:
    document = keys.sign_document(
        build_head_document(
            tenant_id=tenant_id, sequence=head.sequence, hash=head.hash, signed_at=now
        ),
        purpose=HEAD_PURPOSE,
    )
    return SignedAuditHead(
        tenant_id=tenant_id,
        sequence=head.sequence,
        hash=head.hash,
        signed_at=now,
        key_id=document["key_id"],
        signature=bytes.fromhex(document["signature"]),
    )


def _are_in_same_hour(first: datetime, second: datetime) -> bool:
    """Return whether both times are in the same hour.

    If the clock was set back, `second` can be in an earlier hour. That is another hour, so heads
    are still signed.
    """
    return first.timestamp() // 3_600 == second.timestamp() // 3_600
