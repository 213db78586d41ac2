"""Checks the chain where it stands, for somebody who looks at it in the console.

Every entry is hashed again and must follow the one before; every signed head must be signed by this
installation and agree with its entry. Who can write to the database as its owner can change an
entry, but not what was signed of it. The offline verifier (`manage.py verify_audit`) says the same
without trusting this installation.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from caret.foundation.signing import BadSignature, PublicKeys, UnknownKey, verify_document
from tenants.audit.chain import GENESIS, HEAD_PURPOSE
from tenants.audit.heads import ChainBroken, require_unbroken, signed_document
from tenants.audit.operations import record_read
from tenants.audit.queries import Head, find_head, read_range
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.models import SignedAuditHead

# Some seconds of work. A longer chain is checked from a signed head on.
MAX_ENTRIES: Final = 50_000
_START: Final = Head(0, GENESIS)


@dataclass(frozen=True, slots=True)
class Checked:
    first: int  # the first entry that was checked; more than `last`: there is none
    last: int
    num_heads: int  # signed ones that agree
    # The first entry that is missing, changed or put in, or whose signed head is; None: all hold.
    broken_at: int | None

    @property
    def is_whole(self) -> bool:
        return self.broken_at is None

    @property
    def num_entries(self) -> int:
        return max(0, self.last - self.first + 1)


def check_trail(*, actor: Actor, keys: PublicKeys, now: datetime) -> Checked:
    """Up to the entry that says that it was checked. Raises Forbidden."""
    actor.require(Permission.READ_AUDIT)
    with tenant(actor.tenant_id):
        record_read(actor=actor, action="audit.checked", target="audit", now=now)
        end = find_head(tenant_id=actor.tenant_id)
        heads = _heads_since(actor.tenant_id, end.sequence - MAX_ENTRIES)
    first = heads[0].sequence + 1 if end.sequence > MAX_ENTRIES and heads else 1
    try:
        num_heads = _walk(actor.tenant_id, heads, end, keys)
    except ChainBroken as broken:
        return Checked(first, end.sequence, 0, broken.sequence)
    return Checked(first, end.sequence, num_heads, None)


def _walk(tenant_id: TenantId, heads: list[SignedAuditHead], end: Head, keys: PublicKeys) -> int:
    """From signed head to signed head, then to the end. How many there were. Raises ChainBroken."""
    begins = _START
    if end.sequence > MAX_ENTRIES and heads:
        begins = _verified(heads[0], keys)
    for ends in (*(_verified(head, keys) for head in heads), end):
        entries = read_range(tenant_id=tenant_id, first=begins.sequence + 1, last=ends.sequence)
        require_unbroken(entries, begins=begins, ends=ends)
        begins = ends
    return len(heads)


def _verified(row: SignedAuditHead, keys: PublicKeys) -> Head:
    """Raises ChainBroken."""
    try:
        verify_document(keys, signed_document(row), purpose=HEAD_PURPOSE)
    except (BadSignature, UnknownKey) as error:
        raise ChainBroken(row.sequence) from error
    return Head(row.sequence, bytes(row.hash))


def _heads_since(tenant_id: TenantId, sequence: int) -> list[SignedAuditHead]:
    """By sequence. Must run inside the tenant's scope."""
    found = SignedAuditHead.objects.filter(tenant_id=tenant_id, sequence__gte=max(1, sequence))
    return list(found.order_by("sequence"))
