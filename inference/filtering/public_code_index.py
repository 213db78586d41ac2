"""The operator's index of public code, and the search for completions in it.

The file is a header and hashes in ascending order, eight bytes each. It is mapped into memory and
searched by bisection: it needs no startup time, and gateways on one machine share it. `manage.py
index_public_code` writes it.
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
from inference.filtering.fingerprints import WINDOW_CHARS, WINNOW, RollingHash, normalise
from inference.pools.discovery.fleet_state_feed import FleetStateFeed

log = structlog.get_logger(__name__)

# Magic, version, characters per window, windows per kept hash, number of hashes.
HEADER: Final = struct.Struct("<8sIIIxxxxQ")
MAGIC: Final = b"caretpub"
VERSION: Final = 1
HASH_BYTES: Final = 8
# At least this many characters of a window must be the completion's own: a completion that only
# adds a name or two to public code does not count as a copy.
MIN_OWN_CHARS: Final = 50
_MAX_CONTEXT_CHARS: Final = 1_000  # of the prefix, before normalization


class PublicCodeIndex(Protocol):
    def contains(self, hash_: int) -> bool: ...


class PublicCodeIndexFile:
    """A memory-mapped index. Files of other versions are rejected. Raises BadSetting."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise BadSetting(f"CARET_PUBLIC_CODE_INDEX: {path} cannot be read: {error}.") from error
        if len(self._map) < HEADER.size:
            raise _not_an_index(path)
        magic, version, window, winnow, num_hashes = HEADER.unpack_from(self._map)
        if (magic, version, window, winnow) != (MAGIC, VERSION, WINDOW_CHARS, WINNOW):
            raise _not_an_index(path)
        if len(self._map) != HEADER.size + num_hashes * HASH_BYTES:
            raise _not_an_index(path)
        # Little-endian, like all machines that run engines.
        self._hashes = memoryview(self._map)[HEADER.size :].cast("Q")

    def __len__(self) -> int:
        return len(self._hashes)

    def contains(self, hash_: int) -> bool:
        index = bisect_left(self._hashes, hash_)
        return index < len(self._hashes) and self._hashes[index] == hash_


class ActivePublicCodeIndex:
    """The index that an operator has started, otherwise that of the gateway's setting."""

    def __init__(self, configured: PublicCodeIndex | None = None) -> None:
        self._configured = configured
        self.current = configured  # None: there is no index

    @classmethod
    def open(cls, path: Path | None) -> Self:
        """Open the file of the setting, if there is one. Raises BadSetting."""
        return cls(PublicCodeIndexFile(path) if path else None)

    def start(self, index: PublicCodeIndex | None) -> None:
        """Use this index; None uses that of the setting again."""
        self.current = self._configured if index is None else index


class PublicCodeMatcher:
    """Searches for one completion that continues `prefix`."""

    def __init__(self, public_code: PublicCodeIndex, *, prefix: str) -> None:
        self._public_code = public_code
        self._rolling = RollingHash()
        context = normalise(prefix[-_MAX_CONTEXT_CHARS:])
        for character in context[-(WINDOW_CHARS - MIN_OWN_CHARS) :]:
            self._rolling.add(character)

    def is_public(self, part: str) -> bool:
        """Add the next part of the completion. Return whether a window of it is in the index."""
        for character in normalise(part):
            hash_ = self._rolling.add(character)
            if hash_ is not None and self._public_code.contains(hash_):
                return True
        return False


class PublicCodeFeed(FleetStateFeed):
    """Follows the index of public code that operators start and stop, in Redis."""

    name = "public_code"
    version = PUBLIC_CODE_VERSION
    channel = PUBLIC_CODE_CHANGED

    def __init__(self, redis: Redis, active: ActivePublicCodeIndex, folder: Path) -> None:
        super().__init__(redis)
        self._active = active
        self._folder = folder

    async def apply_state(self) -> None:
        entries = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(PUBLIC_CODE)))
        started: PublicCodeIndexFile | None = None
        for data in entries.values():
            try:
                index = decode_index_change(data)
                if index.is_running:
                    started = PublicCodeIndexFile(index_file(self._folder, index.name))
            # A newer format, or a file that this gateway does not see. It reports that it has none.
            except (msgspec.DecodeError, BadSetting) as error:
                log.warning("public_code_index.invalid", error=str(error))
        self._active.start(started)


def _not_an_index(path: Path) -> BadSetting:
    return BadSetting(
        f"CARET_PUBLIC_CODE_INDEX: {path} is no index of this version; "
        "build it again with `manage.py index_public_code FOLDER --to FILE`."
    )
