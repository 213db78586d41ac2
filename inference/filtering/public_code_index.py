"""The index of public code, and the detection of public code in completions.

The index file consists of a header and hashes in ascending order, eight bytes each. It is mapped
into memory and searched by bisection. So a gateway does not have to load it, and gateways on one
machine share the memory. `manage.py index_public_code` writes the file.
"""

import mmap
import struct
from bisect import bisect_left
from pathlib import Path
from typing import Any, Final, Protocol, Self, cast

import msgspec
import structlog
from redis.asyncio import Redis

from caret.contracts.public_code import (
    PUBLIC_CODE,
    PUBLIC_CODE_CHANGED,
    PUBLIC_CODE_VERSION,
    decode_index_change,
    index_file,
)
from caret.foundation.environment import BadSetting
from inference.filtering.fingerprints import (
    WINDOW_CHARS,
    WINNOW_HASHES,
    RollingHash,
    remove_white_space,
)
from inference.pools.discovery.fleet_state_feed import FleetStateFeed

log = structlog.get_logger(__name__)

# Magic, version, characters per window, windows per kept hash, number of hashes.
HEADER: Final = struct.Struct("<8sIIIxxxxQ")
MAGIC: Final = b"caretpub"
VERSION: Final = 1  # of the file format
HASH_BYTES: Final = 8
# At least this many characters of a window must come from the completion. A completion that adds
# only a name or two to public code does not count as a copy.
MIN_OWN_CHARS: Final = 50
_MAX_CONTEXT_CHARS: Final = 1_000  # of the prefix, with white space


class PublicCodeIndex(Protocol):
    def contains(self, hash_: int) -> bool: ...


class PublicCodeIndexFile:
    """A memory-mapped index."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises BadSetting if it is unreadable, invalid or of another version."""
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise BadSetting(f"{path} cannot be read: {error}.") from error
        if len(self._map) < HEADER.size:
            raise _not_an_index(path)
        magic, version, window, winnow, num_hashes = HEADER.unpack_from(self._map)
        if (magic, version, window, winnow) != (MAGIC, VERSION, WINDOW_CHARS, WINNOW_HASHES):
            raise _not_an_index(path)
        if len(self._map) != HEADER.size + num_hashes * HASH_BYTES:
            raise _not_an_index(path)
        # The file is little-endian, like all machines that run gateways.
        self._hashes = memoryview(self._map)[HEADER.size :].cast("Q")

    def __len__(self) -> int:
        return len(self._hashes)

    def contains(self, hash_: int) -> bool:
        index = bisect_left(self._hashes, hash_)
        return index < len(self._hashes) and self._hashes[index] == hash_


class ActivePublicCodeIndex:
    """The index in use: the one that operators have started, or that of CARET_PUBLIC_CODE_INDEX."""

    def __init__(self, configured: PublicCodeIndex | None = None) -> None:
        self._configured = configured
        self.current = configured  # None: there is no index

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the file of CARET_PUBLIC_CODE_INDEX; None: it is not set. Raises BadSetting."""
        try:
            return cls(PublicCodeIndexFile(path) if path else None)
        except BadSetting as error:
            raise BadSetting(f"CARET_PUBLIC_CODE_INDEX: {error}") from error

    def start(self, index: PublicCodeIndex | None) -> None:
        """Use `index`; if it is None, use the index of CARET_PUBLIC_CODE_INDEX again."""
        self.current = self._configured if index is None else index


class PublicCodeMatcher:
    """Detects public code in one completion, which continues `prefix`."""

    def __init__(self, public_code: PublicCodeIndex, *, prefix: str) -> None:
        self._public_code = public_code
        self._rolling = RollingHash()
        context = remove_white_space(prefix[-_MAX_CONTEXT_CHARS:])
        for character in context[-(WINDOW_CHARS - MIN_OWN_CHARS) :]:
            self._rolling.add(character)

    def feed(self, part: str) -> bool:
        """Add a part of the completion. Return whether a window of the index ends in this part."""
        for character in remove_white_space(part):
            hash_ = self._rolling.add(character)
            if hash_ is not None and self._public_code.contains(hash_):
                return True
        return False


class PublicCodeFeed(FleetStateFeed):
    """Reads from Redis the index that operators have started, and follows its changes."""

    name = "public_code"
    version_key = PUBLIC_CODE_VERSION
    channel = PUBLIC_CODE_CHANGED

    def __init__(self, redis: Redis, active: ActivePublicCodeIndex, folder: Path) -> None:
        super().__init__(redis)
        self._active = active
        self._folder = folder

    async def apply_state(self) -> None:
        entries = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(PUBLIC_CODE)))
        running_index: PublicCodeIndexFile | None = None
        for data in entries.values():
            try:
                change = decode_index_change(data)
                if change.is_running:
                    running_index = PublicCodeIndexFile(index_file(self._folder, change.name))
            # The entry has a newer format, or this gateway cannot read the file. Without another
            # index, the gateway's metrics show that it cannot filter public code.
            except (msgspec.DecodeError, BadSetting) as error:
                log.warning("public_code_index.invalid", error=str(error))
        self._active.start(running_index)


def _not_an_index(path: Path) -> BadSetting:
    return BadSetting(
        f"{path} is not an index of this version of Caret. Build it again, on the operator pages "
        "or with `manage.py index_public_code FOLDER --to FILE`."
    )
