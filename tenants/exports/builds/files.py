"""The file of a build, written from its parts into sealed pieces; its proof."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

from caret.foundation.postgres.tenancy import tenant
from tenants.exports.builds import sealed
from tenants.exports.builds.claim import Claim
from tenants.exports.builds.members import Member
from tenants.exports.builds.parts import decode_part
from tenants.exports.definitions import EXPORTS
from tenants.exports.export import Export
from tenants.exports.formats import FORMATS
from tenants.exports.proof import File, prove
from tenants.exports.rows import Period, Row
from tenants.models import ExportBuild, Tenant


@dataclass(frozen=True, slots=True)
class Made:
    name: str
    num_bytes: int
    sha256: str
    proof: bytes


def write_file(claim: Claim, row: ExportBuild, members: Sequence[Member]) -> Made:
    """Anew, whatever an earlier attempt has written. Raises Lost, Refused, and what sealing and the
    storage raise."""
    sealed.forget_file(claim)
    (member,) = members
    export, out = EXPORTS[member.definition], sealed.SealedFile(claim)
    written = FORMATS[row.media](export, read_back(claim, 0, export), cast("IO[bytes]", out))
    out.finish()
    file = file_of(row, export, name=f"{_stem(claim, row)}.{row.media}")
    proof = prove(
        tenant_id=claim.tenant_id,
        file=file,
        beginning=member.beginning,
        written=written,
        now=claim.clock(),
    )
    return Made(file.name, written.num_bytes, written.sha256, proof)


def read_back(claim: Claim, place: int, export: Export) -> Iterator[Sequence[Row]]:
    """A member's rows, a part at a time."""
    for data in sealed.read_parts(claim, member=place):
        yield decode_part(data, export.columns)


def file_of(row: ExportBuild, export: Export, *, name: str) -> File:
    period = Period(row.since, row.until) if export.is_of_period else None
    return File(row.id, export.name, export.version, row.media, name, period)


def _stem(claim: Claim, row: ExportBuild) -> str:
    with tenant(claim.tenant_id):
        slug = Tenant.objects.values_list("slug", flat=True).get(id=claim.tenant_id)
    return f"{slug}-{row.definition}-{row.since:%Y-%m-%d}-{row.until:%Y-%m-%d}"
