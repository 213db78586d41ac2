"""Checks the chain where it stands, for somebody who looks at it in the console.

Every entry is hashed again and must follow the one before; every signed head must be signed by this
installation and agree with its entry. Who can write to the database as its owner can change an
entry, but not what was signed of it. The offline verifier (`manage.py verify_audit`) says the same
without trusting this installation.

A check is bounded in entries and in time, and one of a tenant goes at a time: it says where it
stopped, and the next may go on from there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from caret.foundation.crypto.signing import BadSignature, PublicKeys, UnknownKey, verify_document
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.redis_connection import connect
from tenants.base.redis_lock import redis_lock
from tenants.models import AuditEntry, SignedAuditHead
from tenants.security.audit.hash_chain import GENESIS, HEAD_PURPOSE
from tenants.security.audit.operations import record_read
from tenants.security.audit.queries import ChainHead, find_head, read_range
from tenants.security.audit.signed_heads import ChainBroken, require_unbroken_chain, signed_document
from tenants.security.authorization.actor import Actor

# Some seconds of work. Of a longer chain the newest are checked, from a signed head on, if any.
MAX_ENTRIES: Final = 50_000
MAX_S: Final = 20.0
_STEP: Final = 1_000  # entries between two looks at the clock


@dataclass(frozen=True, slots=True)
class ChainCheckResult:
    first: int  # the first entry that was checked; more than `last`: there is none
    last: int
    num_heads: int  # signed ones that agree
    # The first entry that is missing, changed or put in, or whose signed head is; None: all hold.
    broken_at: int | None
    end: int  # the chain's last entry; more than `last`: it stopped there

    @property
    def is_whole(self) -> bool:
        return self.broken_at is None

    @property
    def is_unfinished(self) -> bool:
        return self.is_whole and self.last < self.end

    @property
    def num_entries(self) -> int:
        return max(0, self.last - self.first + 1)


@dataclass(frozen=True, slots=True)
class _ChainSection:
    """Of a chain, to be checked."""

    tenant_id: TenantId
    after: int  # the entry before it; 0: there is none
    last: int
    heads: dict[int, SignedAuditHead]  # by sequence, from `after` on
    end: ChainHead  # of the whole chain


def check_chain(
    *,
    actor: Actor,
    keys: PublicKeys,
    now: datetime,
    after: int | None = None,
    clock: Callable[[], float] = monotonic,
) -> ChainCheckResult:
    """Up to the entry that says that it was checked, or to where the bounds are met. `after`: an
    entry that an earlier check has come to; None: the newest. Raises Forbidden, Invalid, Conflict
    while another one of the tenant's goes on, redis.RedisError."""
    actor.require(Permission.READ_AUDIT)
    over_at_s = clock() + MAX_S
    with redis_lock(connect(), f"audit-check:{actor.tenant_id}") as is_alone:
        if not is_alone:
            raise Conflict("A verification is already running. Try again in a few seconds.")
        with tenant_scope(actor.tenant_id):
            record_read(actor=actor, action="audit.checked", target="audit", now=now)
            part = _part(actor.tenant_id, after)
        return _follow_chain(part, keys, is_over=lambda: clock() >= over_at_s)


def _follow_chain(
    part: _ChainSection, keys: PublicKeys, *, is_over: Callable[[], bool]
) -> ChainCheckResult:
    """From signed head to signed head, and to the end."""
    last, broken_at = part.after, None
    try:
        begins = _kept(part.tenant_id, part.after)
        for ends in _ends(part, keys):
            entries = read_range(
                tenant_id=part.tenant_id, first=begins.sequence + 1, last=ends.sequence
            )
            require_unbroken_chain(entries, begins=begins, ends=ends)
            begins, last = ends, ends.sequence
            if is_over():
                break
    except ChainBroken as broken:
        broken_at = broken.sequence
    num_heads = sum(sequence <= last for sequence in part.heads)
    return ChainCheckResult(part.after + 1, last, num_heads, broken_at, part.end.sequence)


def _ends(part: _ChainSection, keys: PublicKeys) -> Iterator[ChainHead]:
    """To where the chain is followed, step by step. Raises ChainBroken."""
    steps = range(part.after + _STEP, part.last, _STEP)
    for sequence in sorted({*steps, *part.heads, part.last}):
        if sequence in part.heads:
            yield _verified(part.heads[sequence], keys)
        elif sequence < part.end.sequence:
            yield _kept(part.tenant_id, sequence)
    if part.last == part.end.sequence:
        yield part.end


def _part(tenant_id: TenantId, after: int | None) -> _ChainSection:
    """Must run inside the tenant's scope. Raises Invalid."""
    end = find_head(tenant_id=tenant_id)
    if after is None:
        after = _newest_from(tenant_id, end.sequence)
    elif not 0 <= after < end.sequence:
        raise InvalidValue("after", "This entry does not exist.")
    last = min(end.sequence, after + MAX_ENTRIES)
    found = SignedAuditHead.objects.filter(tenant_id=tenant_id, sequence__gte=max(1, after))
    if last < end.sequence:  # what is signed beyond the end was cut off, and is missed there
        found = found.filter(sequence__lte=last)
    heads = {row.sequence: row for row in found.order_by("sequence")}
    return _ChainSection(tenant_id, after, last, heads, end)


def _newest_from(tenant_id: TenantId, end: int) -> int:
    """The signed entry from which MAX_ENTRIES reach the end; 0: from the beginning."""
    if end <= MAX_ENTRIES:
        return 0
    found = SignedAuditHead.objects.filter(tenant_id=tenant_id, sequence__gte=end - MAX_ENTRIES)
    head = found.order_by("sequence").first()
    return 0 if head is None else head.sequence


def _kept(tenant_id: TenantId, sequence: int) -> ChainHead:
    """As the entry itself says. Raises ChainBroken."""
    if sequence == 0:
        return ChainHead(0, GENESIS)
    with tenant_scope(tenant_id):
        found = AuditEntry.objects.filter(tenant_id=tenant_id, sequence=sequence)
        row = found.order_by("sequence").first()
    if row is None:
        raise ChainBroken(sequence)
    return ChainHead(sequence, bytes(row.hash))


def _verified(row: SignedAuditHead, keys: PublicKeys) -> ChainHead:
    """Raises ChainBroken."""
    try:
        verify_document(keys, signed_document(row), purpose=HEAD_PURPOSE)
    except (BadSignature, UnknownKey) as error:
        raise ChainBroken(row.sequence) from error
    return ChainHead(row.sequence, bytes(row.hash))
