"""Export of a period of the audit log, which can be verified offline with public keys only.

    header    signed: the tenant, the period, the number of entries, the hash of the entry before
              the first one, the hash of the last entry, and the head of the whole chain
    entry     one line for each entry, in the order of the chain, without gaps
    head      one line for each signed head, after its entry
    trailer   signed: the SHA-256 of all bytes before the trailer

Each line is canonical JSON. The export contains all entries of the chain from the first to the last
entry of the period. An entry between them is included even if its time is outside the period, which
can happen if the clock jumped. Memory use does not grow with the export.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from django.db.models import Max, Min

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import SigningKeys
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.base.validation.time_bounds import validate_datetime
from tenants.models import AuditEntry, SignedAuditHead, Tenant
from tenants.security.audit.hash_chain import (
    DEFINITION,
    FORMAT,
    HEADER_PURPOSE,
    TRAILER_PURPOSE,
    build_document,
    format_timestamp,
)
from tenants.security.audit.operations import ChangeFields, record_read
from tenants.security.audit.queries import ChainHead, filter_period, find_head, read_range
from tenants.security.audit.signed_heads import build_signed_document
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class AuditExportPeriod:
    """A half-open period. None: unbounded on that side."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class ChainRange:
    """The range of the chain that is exported."""

    first: int  # greater than `last`: the range is empty
    last: int
    previous_hash: str | None  # hash of the entry before the first one; None: the range is empty
    last_hash: str | None  # hash of the last entry
    head: ChainHead  # of the whole chain at the time of the export

    @property
    def num_entries(self) -> int:
        return self.last - self.first + 1


def write_export(
    *,
    actor: Actor,
    period: AuditExportPeriod,
    out: IO[bytes],
    keys: SigningKeys,
    now: datetime,
    reason: str = "",
) -> ChainRange:
    """Record the export in the audit log, write it to `out`, and return the exported range.

    Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.READ_AUDIT)
    validate_datetime("since", period.since)
    validate_datetime("until", period.until)
    with tenant_scope(actor.tenant_id):
        record_read(
            actor=actor,
            action="audit.exported",
            target="audit",
            filters=_to_change_fields(period),
            now=now,
            reason=reason,
        )
        slug = Tenant.objects.values_list("slug", flat=True).get(id=actor.tenant_id)
        chain_range = _find_range(actor.tenant_id, period)
    header = _build_header(actor.tenant_id, slug, period, chain_range) | {
        "generated_at": format_timestamp(now)
    }
    digest = hashlib.sha256()
    for line in _build_lines(
        keys.sign_document(header, purpose=HEADER_PURPOSE), actor.tenant_id, chain_range
    ):
        digest.update(line)
        out.write(line)
    trailer = {"kind": "trailer", "rows": chain_range.num_entries, "sha256": digest.hexdigest()}
    out.write(_encode_line(keys.sign_document(trailer, purpose=TRAILER_PURPOSE)))
    return chain_range


def _find_range(tenant_id: TenantId, period: AuditExportPeriod) -> ChainRange:
    entries = AuditEntry.objects.filter(tenant_id=tenant_id)
    ends = filter_period(entries, period.since, period.until).aggregate(
        first=Min("sequence"), last=Max("sequence")
    )
    head = find_head(tenant_id=tenant_id)
    if ends["first"] is None:
        return ChainRange(first=1, last=0, previous_hash=None, last_hash=None, head=head)
    first, last = (entries.get(sequence=ends[name]) for name in ("first", "last"))
    return ChainRange(
        first=first.sequence,
        last=last.sequence,
        previous_hash=bytes(first.previous_hash).hex(),
        last_hash=bytes(last.hash).hex(),
        head=head,
    )


def _build_header(
    tenant_id: TenantId, slug: str, period: AuditExportPeriod, chain_range: ChainRange
) -> dict[str, Any]:
    return {
        "kind": "header",
        "format": FORMAT,
        "definition": DEFINITION,
        "tenant_id": tenant_id,
        "tenant": slug,
        "since": None if period.since is None else format_timestamp(period.since),
        "until": None if period.until is None else format_timestamp(period.until),
        "rows": chain_range.num_entries,
        "first_sequence": chain_range.first,
        "last_sequence": chain_range.last,
        "previous_hash": chain_range.previous_hash,
        "last_hash": chain_range.last_hash,
        "chain_head": {"sequence": chain_range.head.sequence, "hash": chain_range.head.hash.hex()},
    }


def _build_lines(
    header: dict[str, Any], tenant_id: TenantId, chain_range: ChainRange
) -> Iterator[bytes]:
    yield _encode_line(header)
    heads = _read_heads(tenant_id, chain_range)
    head = next(heads, None)
    for entry in read_range(tenant_id=tenant_id, first=chain_range.first, last=chain_range.last):
        # The stored hash is exported, not a computed one. The verifier can then notice that an
        # entry was changed in the database.
        yield _encode_line({**build_document(entry), "hash": bytes(entry.hash).hex()})
        if head is not None and head.sequence == entry.sequence:
            yield _encode_line(build_signed_document(head))
            head = next(heads, None)


def _read_heads(tenant_id: TenantId, chain_range: ChainRange) -> Iterator[SignedAuditHead]:
    """Yield the signed heads by sequence.

    One query for each head: there is about one head an hour.
    """
    after = chain_range.first - 1
    while True:
        with tenant_scope(tenant_id):
            head = (
                SignedAuditHead.objects.filter(
                    tenant_id=tenant_id, sequence__gt=after, sequence__lte=chain_range.last
                )
                .order_by("sequence")
                .first()
            )
        if head is None:
            return
        yield head
        after = head.sequence


def _encode_line(document: dict[str, Any]) -> bytes:
    return canonicalize(document) + b"\n"


def _to_change_fields(period: AuditExportPeriod) -> ChangeFields:
    return {
        "since": None if period.since is None else format_timestamp(period.since),
        "until": None if period.until is None else format_timestamp(period.until),
    }
