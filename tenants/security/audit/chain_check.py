"""Check of the audit chain in the database, for users of the console.

The check hashes every entry again and compares its `previous_hash` with the hash of the entry
before. It verifies the signature of every signed head and compares the head with its entry. The
owner of the database could change an entry, but could not forge a signed head. The offline verifier
(`manage.py verify_audit`) checks an export in the same way, without trust in this installation.

A check is bounded in entries and in time, and a tenant can run one at a time. The result says where
the check stopped, so that the next one can continue there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from caret.foundation.crypto.signing import BadSignature, PublicKeys, verify_document
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.models import AuditEntry, SignedAuditHead
from tenants.security.audit.hash_chain import GENESIS, HEAD_PURPOSE
from tenants.security.audit.operations import record_read
from tenants.security.audit.queries import ChainHead, find_head, read_range
from tenants.security.audit.signed_heads import (
    ChainBroken,
    build_signed_document,
    require_unbroken_chain,
)
from tenants.security.authorization.actor import Actor

# The entries of one check, which take a few seconds. In a longer chain, the check begins at the
# oldest signed head among the last MAX_ENTRIES entries. If none of them is signed, it begins at the
# first entry of the chain.
MAX_ENTRIES: Final = 50_000
MAX_S: Final = 20.0
_STEP: Final = 1_000  # entries between two checks of the time limit


@dataclass(frozen=True, slots=True)
class ChainCheckResult:
    first: int  # the first entry that was checked; greater than `last`: no entry was checked
    last: int
    num_heads: int  # signed heads that agree with their entries
    # The first entry that is missing, changed or inserted, or whose signed head does not match.
    # None: none was found up to `last`.
    broken_at: int | None
    # The last entry of the whole chain; greater than `last`: not all entries were checked.
    chain_end: int

    @property
    def is_unbroken(self) -> bool:
        return self.broken_at is None

    @property
    def is_unfinished(self) -> bool:
        return self.is_unbroken and self.last < self.chain_end

    @property
    def num_entries(self) -> int:
        return max(0, self.last - self.first + 1)


@dataclass(frozen=True, slots=True)
class _ChainSection:
    """The part of a chain that one check covers."""

    tenant_id: TenantId
    after: int  # the entry before the section; 0: none
    last: int  # the last entry of the section
    heads: dict[int, SignedAuditHead]  # by sequence, from `after` on
    chain_end: ChainHead  # the recorded head of the whole chain


def check_chain(
    *,
    actor: Actor,
    keys: PublicKeys,
    now: datetime,
    after: int | None = None,
    clock: Callable[[], float] = monotonic,
) -> ChainCheckResult:
    """Check the chain up to its end, or until the limits of entries and time are reached.

    `after` is the last entry of an earlier check, from which this one continues; None: begin as
    described at MAX_ENTRIES. The check writes an audit entry of its own, which is part of what it
    checks.

    Raises Forbidden, InvalidValue, Conflict while another check of the tenant runs,
    redis.RedisError.
    """
    actor.require(Permission.READ_AUDIT)
    deadline_s = clock() + MAX_S
    with redis_lock(connect_to_redis(), f"audit-check:{actor.tenant_id}") as has_lock:
        if not has_lock:
            raise Conflict("A verification is already running. Try again in a few seconds.")
        with tenant_scope(actor.tenant_id):
            record_read(actor=actor, action="audit.checked", target="audit", now=now)
            section = _read_section(actor.tenant_id, after)
        return _follow_chain(section, keys, is_out_of_time=lambda: clock() >= deadline_s)


def _follow_chain(
    section: _ChainSection, keys: PublicKeys, *, is_out_of_time: Callable[[], bool]
) -> ChainCheckResult:
    """Follow the chain from checkpoint to checkpoint, up to the end of the section."""
    last, broken_at = section.after, None
    try:
        previous = _read_head_of_entry(section.tenant_id, section.after)
        for checkpoint in _iterate_checkpoints(section, keys):
            entries = read_range(
                tenant_id=section.tenant_id, first=previous.sequence + 1, last=checkpoint.sequence
            )
            require_unbroken_chain(entries, begins=previous, ends=checkpoint)
            previous, last = checkpoint, checkpoint.sequence
            if is_out_of_time():
                break
    except ChainBroken as broken:
        broken_at = broken.sequence
    # The head of `section.after` itself can be the broken one.
    num_heads = sum(sequence <= last and sequence != broken_at for sequence in section.heads)
    return ChainCheckResult(
        first=section.after + 1,
        last=last,
        num_heads=num_heads,
        broken_at=broken_at,
        chain_end=section.chain_end.sequence,
    )


def _iterate_checkpoints(section: _ChainSection, keys: PublicKeys) -> Iterator[ChainHead]:
    """Yield the heads at which the check can stop, in order.

    These are the signed heads, every _STEP-th entry, and the end of the section. The signature of a
    signed head is verified before the head is yielded. Raises ChainBroken.
    """
    steps = range(section.after + _STEP, section.last, _STEP)
    for sequence in sorted({*steps, *section.heads, section.last}):
        if sequence in section.heads:
            yield _verify_head(section.heads[sequence], keys)
        elif sequence < section.chain_end.sequence:  # the chain's end is yielded below
            yield _read_head_of_entry(section.tenant_id, sequence)
    if section.last == section.chain_end.sequence:
        # The head that is recorded for the whole chain, apart from the entries. If the last entry
        # was deleted, the remaining entries do not lead to this head.
        yield section.chain_end


def _read_section(tenant_id: TenantId, after: int | None) -> _ChainSection:
    """Return the section to check. Must run inside the tenant's scope. Raises InvalidValue."""
    chain_end = find_head(tenant_id=tenant_id)
    if after is None:
        after = _find_default_start(tenant_id, chain_end.sequence)
    elif not 0 <= after < chain_end.sequence:
        raise InvalidValue("after", "This entry does not exist.")
    last = min(chain_end.sequence, after + MAX_ENTRIES)
    signed_heads = SignedAuditHead.objects.filter(tenant_id=tenant_id, sequence__gte=max(1, after))
    # At the chain's end, heads beyond it are loaded, too: they show that entries were cut off.
    if last < chain_end.sequence:
        signed_heads = signed_heads.filter(sequence__lte=last)
    heads = {row.sequence: row for row in signed_heads.order_by("sequence")}
    return _ChainSection(tenant_id, after, last, heads, chain_end)


def _find_default_start(tenant_id: TenantId, chain_end: int) -> int:
    """Return the oldest signed entry among the last MAX_ENTRIES.

    0: none of them is signed, or the chain is short enough to be checked from its first entry.
    """
    if chain_end <= MAX_ENTRIES:
        return 0
    signed_heads = SignedAuditHead.objects.filter(
        tenant_id=tenant_id, sequence__gte=chain_end - MAX_ENTRIES
    )
    head = signed_heads.order_by("sequence").first()
    return 0 if head is None else head.sequence


def _read_head_of_entry(tenant_id: TenantId, sequence: int) -> ChainHead:
    """Return the sequence and the stored hash of an entry. Raises ChainBroken if it is missing."""
    if sequence == 0:
        return ChainHead(0, GENESIS)
    with tenant_scope(tenant_id):
        entries = AuditEntry.objects.filter(tenant_id=tenant_id, sequence=sequence)
        row = entries.order_by("sequence").first()
    if row is None:
        raise ChainBroken(sequence)
    return ChainHead(sequence, bytes(row.hash))


def _verify_head(row: SignedAuditHead, keys: PublicKeys) -> ChainHead:
    """Return the head if its signature is valid. Raises ChainBroken."""
    try:
        verify_document(keys, build_signed_document(row), purpose=HEAD_PURPOSE)
    except BadSignature as error:
        raise ChainBroken(row.sequence) from error
    return ChainHead(row.sequence, bytes(row.hash))
