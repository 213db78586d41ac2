"""What was written, for an export's proof."""

import hashlib
from dataclasses import dataclass, field


@dataclass(slots=True)
class Written:
    """What an export's proof says of a file."""

    rows: int = 0
    num_bytes: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def note(self, data: bytes) -> bytes:
        self.num_bytes += len(data)
        self._digest.update(data)
        return data
