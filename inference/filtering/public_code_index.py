"""The operator's index of public code, and whether a completion is found in it.

The file is a header and hashes in ascending order, eight bytes each; it is mapped into memory and
searched by halves, so that it costs no start-up time and gateways of one machine share it.
`manage.py index_public_code` writes it.
"""

import mmap
import struct
from bisect import bisect_left
from pathlib import Path
from typing import Final, Protocol

from caret.foundation.environment import BadSetting
from inference.filtering.fingerprints import WINDOW_CHARS, WINNOW, RollingHash, normalise

# Magic, version, characters of a window, windows of which one is kept, number of hashes.
HEADER: Final = struct.Struct("<8sIIIxxxxQ")
MAGIC: Final = b"caretpub"
VERSION: Final = 1
HASH_BYTES: Final = 8
# So many of a window's characters are the completion's own: one that merely goes on with what is
# public already, by a name or two, is not taken for a copy.
MIN_OWN_CHARS: Final = 50
_MAX_CONTEXT_CHARS: Final = 1_000  # of the prefix, before it is normalised


class PublicCode(Protocol):
    def contains(self, hashed: int) -> bool: ...


class PublicCodeIndexFile:
    """Raises BadSetting when the file is not an index of this version."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: it is empty
            raise BadSetting(f"CARET_PUBLIC_CODE_INDEX: {path} cannot be read: {error}.") from error
        if len(self._map) < HEADER.size:
            raise _not_an_index(path)
        magic, version, window, winnow, num_hashes = HEADER.unpack_from(self._map)
        if (magic, version, window, winnow) != (MAGIC, VERSION, WINDOW_CHARS, WINNOW):
            raise _not_an_index(path)
        if len(self._map) != HEADER.size + num_hashes * HASH_BYTES:
            raise _not_an_index(path)
        # Little-endian, as are all machines that engines run on.
        self._hashes = memoryview(self._map)[HEADER.size :].cast("Q")

    def __len__(self) -> int:
        return len(self._hashes)

    def contains(self, hashed: int) -> bool:
        place = bisect_left(self._hashes, hashed)
        return place < len(self._hashes) and self._hashes[place] == hashed


class PublicCodeMatcher:
    """Follows one completion, which goes on from `prefix`."""

    def __init__(self, public_code: PublicCode, *, prefix: str) -> None:
        self._public_code = public_code
        self._rolling = RollingHash()
        context = normalise(prefix[-_MAX_CONTEXT_CHARS:])
        for character in context[-(WINDOW_CHARS - MIN_OWN_CHARS) :]:
            self._rolling.add(character)

    def is_public(self, part: str) -> bool:
        """Whether the completion, `part` being what is new of it, is found in the index."""
        for character in normalise(part):
            hashed = self._rolling.add(character)
            if hashed is not None and self._public_code.contains(hashed):
                return True
        return False


def _not_an_index(path: Path) -> BadSetting:
    return BadSetting(
        f"CARET_PUBLIC_CODE_INDEX: {path} is no index of this version; "
        "write it anew with `manage.py index_public_code FOLDER --to FILE`."
    )
