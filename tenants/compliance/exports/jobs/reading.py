"""Reading of a job's stored rows, and the description of its files for proofs."""

from collections.abc import Iterator, Sequence

from tenants.compliance.exports.export import Export
from tenants.compliance.exports.jobs import sealed_objects
from tenants.compliance.exports.jobs.claim import JobClaim
from tenants.compliance.exports.jobs.parts import decode_part
from tenants.compliance.exports.proof import ProvenFile
from tenants.compliance.exports.rows import Period, Row
from tenants.models import ExportJob


def read_back(claim: JobClaim, place: int, export: Export) -> Iterator[Sequence[Row]]:
    """Yield the stored rows of one export in parts.

    Raises ClaimLost, and what decryption and the storage raise.
    """
    for data in sealed_objects.read_parts(claim, member=place):
        yield decode_part(data, export.columns)


def file_of(row: ExportJob, export: Export, *, media: str, name: str) -> ProvenFile:
    period = Period(row.since, row.until) if export.is_of_period else None
    return ProvenFile(row.id, export.name, export.version, media, name, period)
