"""Indexes of public code, with which gateways compare completions.

Operators build, start and stop indexes at run time. The files of the indexes are in the folder
CARET_PUBLIC_CODE_FOLDER, which workers and gateways share. The control plane writes the state of
the indexes to Redis, and gateways follow the changes:

    caret:public-code           hash     name -> encoded PublicCodeIndexChange
    caret:public-code:version   counter  incremented by each change; gateways poll it
    caret:public-code:changed   channel  the new version; wakes gateways at once
    caret:public-code:log       list     encoded PublicCodeIndexChange, newest first, bounded
"""

from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

PUBLIC_CODE: Final = "caret:public-code"
PUBLIC_CODE_VERSION: Final = "caret:public-code:version"
PUBLIC_CODE_CHANGED: Final = "caret:public-code:changed"
PUBLIC_CODE_LOG: Final = "caret:public-code:log"


class IndexStatus(StrEnum):
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


class PublicCodeIndexChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # version of this struct: SCHEMA
    name: str
    folder: str  # of the source files, relative to `repositories_folder`
    status: IndexStatus
    # Gateways compare completions with this index. True for at most one index, which is READY. An
    # index that is being built is not running: its status is BUILDING.
    is_running: bool
    num_files: int  # 0 until the index is built
    num_hashes: int  # of pieces of code; 0 until the index is built
    error: str  # of a failed build; "" otherwise
    operator: str  # the operator's handle
    reason: str
    at_ms: int  # Unix milliseconds


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(PublicCodeIndexChange)


def repositories_folder(folder: Path) -> Path:
    return folder / "repositories"


def index_file(folder: Path, name: str) -> Path:
    return folder / "indexes" / f"{name}.index"


def encode_index_change(change: PublicCodeIndexChange) -> bytes:
    return _encoder.encode(change)


def decode_index_change(data: bytes) -> PublicCodeIndexChange:
    """Decode a change whose schema is SCHEMA.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        change = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if change.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {change.schema}, not {SCHEMA}")
    return change
