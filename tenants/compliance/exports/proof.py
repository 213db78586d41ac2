"""The proof of an exported file: a signed document about its content.

    {"kind": "caret-export-proof", "format": 1, "export_id", "tenant", "tenant_id",
     "definition", "version", "media", "file", "since", "until", "complete_until", "generated_at",
     "rows", "bytes", "sha256", "audit": {"before": {"sequence", "hash"}, "after": {...}},
     "key_id", "signature"}

The proof is canonical JSON (RFC 8785) and a line feed, signed by `caret.foundation.crypto.signing`.
It contains the head of the audit chain before the first row was read ("before"), and the head after
the last row was read ("after"). The heads show which state of the tenant the file represents.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports.digesting_writer import WriteDigest
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.rows import Period, RowQuery
from tenants.compliance.exports.verification import FORMAT, KIND, PURPOSE
from tenants.models import Tenant
from tenants.security.audit.hash_chain import format_timestamp
from tenants.security.audit.queries import ChainHead, find_head


@dataclass(frozen=True, slots=True)
class ProofStart:
    """The state before the first row is read."""

    # All rows before this time exist. None: the rows are not complete for any period.
    complete_until: datetime | None
    head: ChainHead  # of the audit chain


@dataclass(frozen=True, slots=True)
class ProvenFile:
    """The file that a proof describes."""

    export_id: uuid.UUID | None  # None: written on the command line
    definition: str  # the name of an export, or of the evidence pack
    version: int  # of the definition
    media: str  # csv, ndjson, parquet, xlsx, zip
    name: str  # of the file
    period: Period | None  # None: the state at the time of reading


def start_proof(export: Export, query: RowQuery) -> ProofStart:
    """Return the state before the first row is read. Up to two queries of Postgres or Redis."""
    until = export.complete_until(query.tenant_id, query.now)
    with tenant_scope(query.tenant_id):
        return ProofStart(until, find_head(tenant_id=query.tenant_id))


def sign_proof(
    *,
    tenant_id: TenantId,
    file: ProvenFile,
    beginning: ProofStart,
    digest: WriteDigest,
    now: datetime,
) -> bytes:
    """Sign the proof after the last row was read. Two queries."""
    with tenant_scope(tenant_id):
        slug = Tenant.objects.values_list("slug", flat=True).get(id=tenant_id)
        after = find_head(tenant_id=tenant_id)
    document = {
        "kind": KIND,
        "format": FORMAT,
        "tenant": slug,
        "tenant_id": str(tenant_id),
        **_describe_file(file),
        "complete_until": _format_time(beginning.complete_until),
        "generated_at": format_timestamp(now),
        "rows": digest.rows,
        "bytes": digest.num_bytes,
        "sha256": digest.sha256,
        "audit": {"before": _describe_head(beginning.head), "after": _describe_head(after)},
    }
    return canonicalize(load_signing_keys().sign_document(document, purpose=PURPOSE)) + b"\n"


def _describe_file(file: ProvenFile) -> dict[str, Any]:
    return {
        "export_id": None if file.export_id is None else str(file.export_id),
        "definition": file.definition,
        "version": file.version,
        "media": file.media,
        "file": file.name,
        "since": None if file.period is None else format_timestamp(file.period.start),
        "until": None if file.period is None else format_timestamp(file.period.end),
    }


def _describe_head(head: ChainHead) -> dict[str, Any]:
    return {"sequence": head.sequence, "hash": head.hash.hex()}


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)
