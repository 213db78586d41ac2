"""Operations that append to the audit log.

Entries contain no secrets: no key texts, digests or passwords. They name users by ID only, because
entries remain after a user's erasure (ADR 0070). They name operators by their handle. Free text,
such as a reason, can still name a person.

Write the entry as the last step of a change, because writing it locks the tenant's chain until the
commit. Because of this lock, entries are numbered in the order of their commits.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from caret.foundation.crypto.canonical_json import to_exact_numbers
from caret.foundation.ids import TenantId
from tenants.models import AuditEntry, AuditHead
from tenants.security.audit.hash_chain import GENESIS, build_document, hash_document, normalize_ip
from tenants.security.authorization.actor import Actor

ChangeFields: TypeAlias = dict[str, str | int | dict[str, object] | None]


def record_change(
    *,
    actor: Actor,
    action: str,
    target: str,
    now: datetime,
    change: tuple[ChangeFields | None, ChangeFields | None],
    reason: str = "",
) -> None:
    """Append an entry for a change. Must run inside the tenant's scope.

    `change` is a pair: the changed fields before and after the change. Other facts belong to the
    second part. A part is None if it has nothing to record, for example the first one if the change
    creates the target.
    """
    before, after = change
    _append_entry(
        actor,
        {"action": action, "target": target, "before": before, "after": after, "reason": reason},
        now,
    )


def record_read(
    *,
    actor: Actor,
    action: str,
    target: str,
    now: datetime,
    filters: ChangeFields | None = None,
    reason: str = "",
) -> None:
    """Append an entry for a sensitive read that changes nothing.

    Must run inside the tenant's scope. `filters` contains the filters of the read. Call this in the
    same transaction, before the data is returned.
    """
    _append_entry(
        actor,
        {"action": action, "target": target, "before": None, "after": filters, "reason": reason},
        now,
    )


def _append_entry(actor: Actor, values: Mapping[str, Any], now: datetime) -> None:
    head = _lock_head(actor.tenant_id)
    entry = AuditEntry(
        tenant_id=actor.tenant_id,
        sequence=head.sequence + 1,
        previous_hash=bytes(head.hash),
        actor_kind=actor.kind,
        actor_id=actor.user_id,
        actor_key=actor.credential_name,
        address=normalize_ip(actor.address),
        request_id=actor.request_id,
        at=now,
        **{
            **values,
            "before": to_exact_numbers(values["before"]),
            "after": to_exact_numbers(values["after"]),
        },
    )
    entry.hash = hash_document(build_document(entry))
    entry.save(force_insert=True)
    AuditHead.objects.filter(tenant_id=actor.tenant_id).update(
        sequence=entry.sequence, hash=entry.hash
    )


def _lock_head(tenant_id: TenantId) -> AuditHead:
    """Lock and return the tenant's chain head, until the commit; create it for the first entry."""
    heads = AuditHead.objects.select_for_update().filter(tenant_id=tenant_id)
    if head := heads.order_by("tenant_id").first():
        return head
    # If two transactions write the first entry, the second waits here and finds the first one's
    # head.
    new = AuditHead(tenant_id=tenant_id, sequence=0, hash=GENESIS)
    AuditHead.objects.bulk_create([new], ignore_conflicts=True)
    return heads.get()
