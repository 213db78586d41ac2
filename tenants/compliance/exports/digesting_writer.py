"""A writer that computes size and digest for an export's proof."""

import hashlib
import io
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(slots=True)
class WriteDigest:
    """Rows, bytes and digest of a file, for its proof."""

    rows: int = 0
    num_bytes: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def update(self, data: bytes) -> bytes:
        self.num_bytes += len(data)
        self._digest.update(data)
        return data


class DigestingWriter(io.RawIOBase):
    """Passes data on and adds it to the digest. The underlying file stays open."""

    def __init__(self, out: IO[bytes], digest: WriteDigest) -> None:
        self._out = out
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._out.write(self._digest.update(bytes(data)))

    def tell(self) -> int:
        return self._digest.num_bytes
