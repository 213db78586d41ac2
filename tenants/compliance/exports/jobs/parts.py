"""Encoding of rows between reading and writing: a compressed batch that keeps values exactly."""

import zlib
from collections.abc import Sequence
from datetime import date, datetime
from functools import cache
from types import GenericAlias
from typing import Any, Final

import msgspec

from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row

# Level 1: texts repeat, so it gives a sixth of the bytes at 100 MB a second.
_LEVEL: Final = 1
_TYPES: Final[dict[ColumnType, Any]] = {
    ColumnType.TEXT: str | None,
    ColumnType.ID: str | None,  # all formats write IDs as text
    ColumnType.TIME: datetime | None,
    ColumnType.DAY: date | None,
    ColumnType.INTEGER: int | None,
    ColumnType.NUMBER: float | None,
    ColumnType.TRUTH: bool | None,
}


def encode_part(rows: Sequence[Row]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)


def decode_part(data: bytes, columns: tuple[ExportColumn, ...]) -> list[Row]:
    rows: list[Row] = _decoder(columns).decode(zlib.decompress(data))
    return rows


@cache
def _decoder(columns: tuple[ExportColumn, ...]) -> msgspec.msgpack.Decoder[Any]:
    types = tuple(_TYPES[column.kind] for column in columns)
    # Known only at run time, so it cannot be an annotation.
    return msgspec.msgpack.Decoder(GenericAlias(list, (GenericAlias(tuple, types),)))
