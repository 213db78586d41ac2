"""Encoding of the rows that a job has read, as compressed parts.

Decoding returns the same values, except that IDs become text.
"""

import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache
from types import GenericAlias
from typing import Any, Final

import msgspec

from tenants.compliance.exports.export import Export
from tenants.compliance.exports.jobs.claim import JobClaim
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.proof import ProvenFile
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Period, Row
from tenants.models import ExportJob

# Of zlib. Texts repeat, so the fastest level already shrinks rows to a sixth, at 100 MB a second.
_LEVEL: Final = 1
_TYPES: Final[dict[ColumnType, Any]] = {
    ColumnType.TEXT: str | None,
    ColumnType.ID: str | None,  # all formats write IDs as text
    ColumnType.TIME: datetime | None,
    ColumnType.DAY: date | None,
    ColumnType.INTEGER: int | None,
    ColumnType.NUMBER: float | None,
    ColumnType.BOOLEAN: bool | None,
}


def encode_part(rows: Sequence[Row]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)


def decode_part(data: bytes, columns: tuple[ExportColumn, ...]) -> list[Row]:
    rows: list[Row] = _make_decoder(columns).decode(zlib.decompress(data))
    return rows


@cache
def _make_decoder(columns: tuple[ExportColumn, ...]) -> msgspec.msgpack.Decoder[Any]:
    types = tuple(_TYPES[column.kind] for column in columns)
    # This is list[tuple[...]] with the types. They are known only at run time, so they cannot be
    # written as an annotation.
    return msgspec.msgpack.Decoder(GenericAlias(list, (GenericAlias(tuple, types),)))


def read_stored_rows(claim: JobClaim, pack_index: int, export: Export) -> Iterator[Sequence[Row]]:
    """Yield the stored rows of one export in parts.

    Raises ClaimLost, and errors of decryption and of the storage.
    """
    for data in sealed_objects.read_parts(claim, pack_index=pack_index):
        yield decode_part(data, export.columns)


def describe_file(row: ExportJob, export: Export, *, media: str, name: str) -> ProvenFile:
    period = Period(row.since, row.until) if export.is_of_period else None
    return ProvenFile(row.id, export.name, export.version, media, name, period)
