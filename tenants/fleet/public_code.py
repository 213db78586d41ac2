"""Indexes of public code that operators build, start and stop. Gateways follow within a second.

An index is running from its start to its stop. Gateways then use it, and pages say that it is in
use. A build that has not ended is a status of the index instead (BUILDING).

The index of the gateways' own setting (CARET_PUBLIC_CODE_INDEX) is not listed here. Gateways use a
running index instead of it.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import redis
import structlog
from django.conf import settings

from caret.contracts.public_code import (
    PUBLIC_CODE,
    PUBLIC_CODE_CHANGED,
    PUBLIC_CODE_LOG,
    PUBLIC_CODE_VERSION,
    SCHEMA,
    IndexStatus,
    PublicCodeIndexChange,
    decode_index_change,
    encode_index_change,
    index_file,
    repositories_folder,
)
from caret.foundation.clock import from_unix_ms, to_unix_ms
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.validation.text import require_reason
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.fleet_state import FleetStateStore

MAX_INDEXES: Final = 20
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_STORE: Final = FleetStateStore(
    PUBLIC_CODE, PUBLIC_CODE_VERSION, PUBLIC_CODE_LOG, PUBLIC_CODE_CHANGED
)
_BUILD_TIMEOUT_S: Final = 24 * 3600.0  # a core indexes 2 MB a second, so this suffices for 170 GB
_MAX_ERROR_CHARS: Final = 200  # of a builder's error that is stored
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PublicCodeIndexRecord:
    """The state of an index after a change. The latest record of an index has its present state."""

    index: PublicCodeIndexChange  # the state, and the operator's reason for the change
    at: datetime  # of the change; the end of a build keeps the time of the operator's request

    @property
    def is_building(self) -> bool:
        return self.index.status is IndexStatus.BUILDING

    @property
    def is_ready(self) -> bool:
        return self.index.status is IndexStatus.READY


@dataclass(frozen=True, slots=True)
class PublicCodeState:
    version: str  # the version in Redis; "0": nothing was ever set
    records: dict[str, PublicCodeIndexRecord]  # the latest record of each index, by its name
    latest: list[PublicCodeIndexRecord]  # the latest records of all indexes, newest first


def list_source_folders() -> list[str]:
    """Return the names of the folders from which an index can be built, sorted."""
    folder = repositories_folder(settings.PUBLIC_CODE_FOLDER)
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def read_public_code_state(connection: redis.Redis) -> PublicCodeState:
    """Read all indexes and the latest changes. Raises RedisUnavailable."""
    state = _STORE.read(connection)
    records, latest = state.decode(_decode)
    return PublicCodeState(state.version, records, latest)


def request_index(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    name: str,
    folder: str,
    reason: str,
    now: datetime,
) -> None:
    """Request that a worker builds an index.

    An index of the same name is replaced if it is not in use. `folder` is one of
    list_source_folders.

    Raises Forbidden, InvalidValue, Conflict, RedisUnavailable.
    """
    _require_manager(operator)
    reason = require_reason(reason)
    if _NAME.fullmatch(name) is None:
        raise InvalidValue(
            "name", "Enter 1 to 40 lower-case letters, digits and hyphens, starting with a letter."
        )
    if folder not in list_source_folders():
        raise InvalidValue("folder", "Choose one of these folders.")
    state = read_public_code_state(connection)
    if name in state.records and state.records[name].index.is_running:
        raise Conflict("This index is in use. Stop using it first, or choose another name.")
    if name not in state.records and len(state.records) >= MAX_INDEXES:
        raise Conflict("You can have at most {most} indexes.", most=MAX_INDEXES)
    change = PublicCodeIndexChange(
        schema=SCHEMA,
        name=name,
        folder=folder,
        status=IndexStatus.BUILDING,
        is_running=False,
        num_files=0,
        num_hashes=0,
        error="",
        operator=operator.handle,
        reason=reason,
        at_ms=to_unix_ms(now),
    )
    _publish(connection, change, version=state.version)


def set_running(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    name: str,
    is_running: bool,
    reason: str,
    now: datetime,
) -> None:
    """Start or stop the use of an index. Only one index can be in use at a time.

    Raises Forbidden, InvalidValue, NotFound, Conflict, RedisUnavailable.
    """
    _require_manager(operator)
    reason = require_reason(reason)
    state = read_public_code_state(connection)
    if name not in state.records:
        raise NotFound("This index does not exist.")
    current = state.records[name].index
    if current.is_running is is_running or current.status is not IndexStatus.READY:
        raise Conflict("The index is not in the expected state. Reload the page.")
    running_names = [
        record.index.name for record in state.records.values() if record.index.is_running
    ]
    if is_running and running_names:
        raise Conflict(
            "Stop using {name} first. Only one index can be in use at a time.",
            name=running_names[0],
        )
    change = msgspec.structs.replace(
        current,
        is_running=is_running,
        operator=operator.handle,
        reason=reason,
        at_ms=to_unix_ms(now),
    )
    _publish(connection, change, version=state.version)


def build_requested_index(connection: redis.Redis) -> None:
    """Build the index that was requested first, if any index is requested.

    The next run repeats an interrupted build. If the same index is requested again during the
    build, the result is not used, and the next run builds the new request. Raises Conflict,
    RedisUnavailable.
    """
    requests = [
        record.index
        for record in read_public_code_state(connection).records.values()
        if record.index.status is IndexStatus.BUILDING
    ]
    if not requests:
        return
    request = min(requests, key=lambda index: index.at_ms)
    result = _build(request)
    state = read_public_code_state(connection)
    current = state.records.get(request.name)
    if current is not None and current.index == request:
        _publish(connection, result, version=state.version)


def _build(index: PublicCodeIndexChange) -> PublicCodeIndexChange:
    """Build the index file in a separate process, and return the index with its new status.

    If the build fails, the index gets the status FAILED and the error of `_describe_failure`. The
    index keeps the operator, the reason and the time of the request, because no operator has caused
    the end of the build.
    """
    file = index_file(settings.PUBLIC_CODE_FOLDER, index.name)
    source = repositories_folder(settings.PUBLIC_CODE_FOLDER) / index.folder
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        num_files, num_hashes = _run_builder(source, file)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return msgspec.structs.replace(
            index, status=IndexStatus.FAILED, error=_describe_failure(error)
        )
    return msgspec.structs.replace(
        index, status=IndexStatus.READY, num_files=num_files, num_hashes=num_hashes
    )


def _describe_failure(error: Exception) -> str:
    """Return the last line of the builder's error output.

    If there is no output, return the last line of the error's text.
    """
    if isinstance(error, subprocess.TimeoutExpired):
        # Its output would end in the middle of the build, without an error.
        return f"The build did not finish within {_BUILD_TIMEOUT_S / 3600:.0f} hours."
    lines = str(getattr(error, "stderr", "") or error).strip().splitlines() or ["unknown"]
    return lines[-1][:_MAX_ERROR_CHARS]


def _run_builder(source: Path, file: Path) -> tuple[int, int]:
    """Run `manage.py index_public_code`, and return the numbers of indexed files and hashes.

    Raises OSError; ValueError for an unexpected result; SubprocessError if the builder fails or
    takes longer than _BUILD_TIMEOUT_S.
    """
    manage = str(settings.REPOSITORY / "manage.py")
    process = subprocess.run(
        [sys.executable, manage, "index_public_code", str(source), "--to", str(file), "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_BUILD_TIMEOUT_S,
        check=True,
    )
    result = json.loads(process.stdout)
    try:
        return int(result["num_files"]), int(result["num_hashes"])
    except (KeyError, TypeError) as error:
        raise ValueError("The builder printed no numbers of files and hashes.") from error


def _publish(connection: redis.Redis, change: PublicCodeIndexChange, *, version: str) -> None:
    data = encode_index_change(change)
    _STORE.change_entry(connection, change.name, data, is_set=True, version=version)
    logger.info(
        "operator.public_code_index_changed",
        index=change.name,
        status=change.status,
        is_running=change.is_running,
        operator=change.operator,
        reason=change.reason,
    )


def _require_manager(operator: OperatorView) -> None:
    if not operator.can_change:
        raise Forbidden("Your operator role does not allow you to change indexes.")


def _decode(data: bytes) -> PublicCodeIndexRecord | None:
    """Decode a change; None: another version or something else has written it."""
    try:
        change = decode_index_change(data)
        at = from_unix_ms(change.at_ms)
    except (msgspec.DecodeError, OverflowError):
        return None
    return PublicCodeIndexRecord(change, at)
