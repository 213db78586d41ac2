"""The evidence pack: all exports in one ZIP with their proofs, the audit chain and certificates.

usage_days.csv, usage_days.csv.proof.json ...   every export, as CSV
audit-trail.ndjson                              the audit chain, for `verify_audit`
certificates/00001.json ...                     deletion certificates, for `verify_certificate`
caret-signing-keys.json                         the public keys, to compare with trusted ones
README.txt                                      how to verify
manifest.json                                   signed: every file with its size and SHA-256
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final, cast
from zipfile import ZIP_DEFLATED, ZipFile

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import write_public_keys
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports.definitions.definitions import EXPORTS
from tenants.compliance.exports.definitions.retention import CERTIFICATES as CERTIFICATE_EXPORT
from tenants.compliance.exports.digesting_writer import DigestingWriter, WriteDigest
from tenants.compliance.exports.evidence_pack_verification import (
    CERTIFICATES,
    KEYS_FILE,
    KIND,
    MANIFEST,
    PURPOSE,
    README,
    TRAIL,
)
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.text import write_csv
from tenants.compliance.exports.jobs.claim import JobClaim
from tenants.compliance.exports.jobs.files.parts import describe_file, read_stored_rows
from tenants.compliance.exports.jobs.progress import ExportProgress
from tenants.compliance.exports.proof import sign_proof
from tenants.compliance.exports.verification import FORMAT, PROOF_SUFFIX
from tenants.models import ExportJob
from tenants.security.audit.export import AuditExportPeriod as TrailPeriod
from tenants.security.audit.export import write_export
from tenants.security.audit.hash_chain import format_timestamp
from tenants.security.authorization.actor import build_system_actor

_README: Final = """\
Evidence of the tenant {slug} ({tenant_id}), from {since} to {until} (UTC, end excluded).

Get the installation's public keys from its operator, over another channel than this file. The keys
in this ZIP show only which keys were in use. To verify every file, you need only Caret's sources:

    manage.py verify_export THIS.zip --public-key KEYS

Put the proof of the ZIP (THIS.zip{suffix}) beside it. Without the proof, this command verifies only
the content of the ZIP. To verify single files:

    manage.py verify_export usage_days.csv --public-key KEYS
    manage.py verify_audit {trail} --public-key KEYS
    manage.py verify_certificate certificates/00001.json --public-key KEYS

{contents}
"""


@dataclass(frozen=True, slots=True)
class _Archive:
    """Writes files one after the other, and collects their entries for the manifest."""

    zip_file: ZipFile
    files: list[dict[str, Any]] = field(default_factory=list)

    def record_entry(self, name: str, digest: WriteDigest) -> None:
        entry = {"name": name, "bytes": digest.num_bytes, "sha256": digest.sha256}
        self.files.append(entry)

    def write_file(self, name: str, data: bytes) -> None:
        digest = WriteDigest()
        self.zip_file.writestr(name, digest.update(data), ZIP_DEFLATED)
        self.record_entry(name, digest)


def write_pack(
    claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress], *, slug: str, out: IO[bytes]
) -> None:
    """Write the pack to `out`. `members` is the progress of each export in the pack.

    Rows are never all in memory, but the manifest's entries are, one for each file. Raises
    ClaimLost, and errors of encryption and of the storage.
    """
    with ZipFile(out, "w", ZIP_DEFLATED) as file:
        archive = _Archive(file)
        for pack_index, member in enumerate(members):
            _write_export_csv(archive, claim, row, pack_index, member)
        _write_trail(archive, claim, row)
        _write_certificates(archive, claim, members)
        keys = write_public_keys(load_signing_keys().public_keys())
        archive.write_file(KEYS_FILE, keys.encode())
        archive.write_file(README, _build_readme(claim, row, members, slug).encode())
        archive.write_file(MANIFEST, _build_manifest(archive, claim, row, slug))


def _write_export_csv(
    archive: _Archive, claim: JobClaim, row: ExportJob, pack_index: int, member: ExportProgress
) -> None:
    """Write an export's CSV file and its proof."""
    export = EXPORTS[member.definition]
    name = f"{export.name}.csv"
    with archive.zip_file.open(name, "w", force_zip64=True) as file:
        digest = write_csv(export, read_stored_rows(claim, pack_index, export), file)
    archive.record_entry(name, digest)
    proof = sign_proof(
        tenant_id=claim.tenant_id,
        file=describe_file(row, export, media="csv", name=name),
        beginning=member.proof_start,
        digest=digest,
        now=claim.clock(),
    )
    archive.write_file(name + PROOF_SUFFIX, proof)


def _write_trail(archive: _Archive, claim: JobClaim, row: ExportJob) -> None:
    digest = WriteDigest()
    with archive.zip_file.open(TRAIL, "w", force_zip64=True) as file:
        write_export(
            actor=build_system_actor(claim.tenant_id),
            period=TrailPeriod(row.since, row.until),
            out=cast("IO[bytes]", DigestingWriter(file, digest)),
            keys=load_signing_keys(),
            now=claim.clock(),
            reason="evidence pack",
        )
    archive.record_entry(TRAIL, digest)


def _write_certificates(
    archive: _Archive, claim: JobClaim, members: Sequence[ExportProgress]
) -> None:
    """Write the deletion certificates of the period, from the rows of their export."""
    names = [column.name for column in CERTIFICATE_EXPORT.columns]
    pack_index = [member.definition for member in members].index(CERTIFICATE_EXPORT.name)
    for rows in read_stored_rows(claim, pack_index, CERTIFICATE_EXPORT):
        for values in rows:
            values_by_name = dict(zip(names, values, strict=True))
            archive.write_file(
                f"{CERTIFICATES}{values_by_name['number']:05}.json",
                str(values_by_name["document"]).encode(),
            )


def _build_readme(
    claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress], slug: str
) -> str:
    return _README.format(
        slug=slug,
        tenant_id=claim.tenant_id,
        since=format_timestamp(row.since),
        until=format_timestamp(row.until),
        suffix=PROOF_SUFFIX,
        trail=TRAIL,
        contents="\n".join(_describe_export(EXPORTS[member.definition]) for member in members),
    )


def _describe_export(export: Export) -> str:
    period = "" if export.is_of_period else " (the state when it was read)"
    return f"{export.name}.csv: {export.title}{period}."


def _build_manifest(archive: _Archive, claim: JobClaim, row: ExportJob, slug: str) -> bytes:
    document = {
        "kind": KIND,
        "format": FORMAT,
        "export_id": str(row.id),
        "tenant": slug,
        "tenant_id": str(claim.tenant_id),
        "since": format_timestamp(row.since),
        "until": format_timestamp(row.until),
        "generated_at": format_timestamp(claim.clock()),
        "files": archive.files,
    }
    return canonicalize(load_signing_keys().sign_document(document, purpose=PURPOSE))
