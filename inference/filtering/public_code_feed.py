"""Follows the index of public code that operators start and stop, in Redis."""

from pathlib import Path
from typing import Any, cast

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
from inference.filtering.public_code_index import ActivePublicCodeIndex, PublicCodeIndexFile
from inference.pools.discovery.fleet_state_feed import FleetStateFeed

log = structlog.get_logger(__name__)


class PublicCodeFeed(FleetStateFeed):
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
