"""A writer that computes a file's size and digest, for a signed proof or manifest."""

import hashlib
import io
from dataclasses import dataclass, field
from typing import IO, Any


@dataclass(slots=True)
class WriteDigest:
    """The number of rows, the size and the SHA-256 of a file that is being written."""

    rows: int = 0  # counted by the caller
    num_bytes: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def update(self, data: bytes) -> bytes:
        """Count the bytes, add them to the digest, and return them."""
        self.num_bytes += len(data)
        self._digest.update(data)
        return data


class DigestingWriter(io.RawIOBase):
    """Writes data to `out`, and adds it to the digest. Closing this writer does not close `out`."""

    def __init__(self, out: IO[bytes], digest: WriteDigest) -> None:
        self._out = out
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._out.write(self._digest.update(bytes(data)))

    def tell(self) -> int:
        return self._digest.num_bytes
