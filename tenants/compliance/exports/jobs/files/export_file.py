"""Writing of a job's file: its parts become encrypted pieces of the file, and a proof is signed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, cast

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.definitions.definitions import EXPORTS, PACK, PACK_VERSION
from tenants.compliance.exports.digesting_writer import DigestingWriter, WriteDigest
from tenants.compliance.exports.formats.text import FORMATS
from tenants.compliance.exports.jobs.claim import JobClaim
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.files.evidence_pack import write_pack
from tenants.compliance.exports.jobs.files.parts import describe_file, read_stored_rows
from tenants.compliance.exports.jobs.progress import ExportProgress
from tenants.compliance.exports.proof import ProofStart, ProvenFile, sign_proof
from tenants.compliance.exports.rows import Period
from tenants.models import ExportJob, Tenant


@dataclass(frozen=True, slots=True)
class ExportFile:
    name: str
    num_bytes: int
    sha256: str  # hex
    proof: bytes  # the signed document


def write_file(claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress]) -> ExportFile:
    """Write the file and sign its proof. Pieces that an earlier attempt has written are deleted.

    Raises ClaimLost, DomainError, and errors of encryption and of the storage.
    """
    sealed_objects.delete_file_pieces(claim)
    slug = _read_slug(claim)
    name = f"{slug}-{row.definition}-{row.since:%Y-%m-%d}-{row.until:%Y-%m-%d}.{row.media}"
    if row.definition == PACK:
        digest, file = _write_pack(claim, row, members, slug), _describe_pack(row, name)
    else:
        digest = _write_rows(claim, row, members[0])
        file = describe_file(row, EXPORTS[row.definition], media=row.media, name=name)
    proof = sign_proof(
        tenant_id=claim.tenant_id,
        file=file,
        beginning=_combine_proof_starts(members),
        digest=digest,
        now=claim.clock(),
    )
    return ExportFile(name, digest.num_bytes, digest.sha256, proof)


def _write_rows(claim: JobClaim, row: ExportJob, member: ExportProgress) -> WriteDigest:
    export, out = EXPORTS[member.definition], sealed_objects.SealedFile(claim)
    stored_rows = read_stored_rows(claim, 0, export)  # 0: the pack_index of a job with one export
    digest = FORMATS[row.media](export, stored_rows, cast("IO[bytes]", out))
    out.finish()
    return digest


def _write_pack(
    claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress], slug: str
) -> WriteDigest:
    out = sealed_objects.SealedFile(claim)
    digest = WriteDigest(rows=sum(member.rows for member in members))
    digesting_out = DigestingWriter(cast("IO[bytes]", out), digest)
    write_pack(claim, row, members, slug=slug, out=cast("IO[bytes]", digesting_out))
    out.finish()
    return digest


def _describe_pack(row: ExportJob, name: str) -> ProvenFile:
    return ProvenFile(row.id, PACK, PACK_VERSION, row.media, name, Period(row.since, row.until))


def _combine_proof_starts(members: Sequence[ExportProgress]) -> ProofStart:
    """Return the time until which all exports are complete, and the first export's chain head.

    The time is None if one export has no such time.
    """
    times = [member.complete_until for member in members if member.complete_until is not None]
    has_all_times = len(times) == len(members)
    return ProofStart(min(times) if has_all_times else None, members[0].proof_start.head)


def _read_slug(claim: JobClaim) -> str:
    with tenant_scope(claim.tenant_id):
        return Tenant.objects.values_list("slug", flat=True).get(id=claim.tenant_id)
