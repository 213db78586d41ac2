"""Reports of leaked keys, queued until a worker handles them.

A report waits in a Redis list. It contains digests of the key, but not its text. No key is looked
up before the response to the reporter, so the response time does not reveal which keys exist.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec
import redis

from caret.contracts.api_key import KEY_PATTERN, parse_key
from caret.foundation.ids import LookupId
from tenants.base.errors import Conflict
from tenants.identity.api_keys.key_secrets import compute_key_digest
from tenants.identity.api_keys.row_writes import PEPPER_VERSION

REPORT_QUEUE: Final = "caret:keys:leak-reports"  # a Redis list of encoded reports
MAX_WAITING: Final = 10_000  # reports; no further ones are accepted while more are waiting
MAX_REPORTS_AT_ONCE: Final = 200  # of one call of build_leak_reports
_MAX_PLACE_CHARS: Final = 300
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")


class LeakReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report of one key."""

    lookup_id: LookupId
    digests: tuple[bytes, ...]  # one for each version of the pepper, beginning with version 1
    place: str  # where the reporter found the key, such as a URL; may be ""


def build_leak_reports(texts: Iterable[str], *, place: str) -> list[LeakReport]:
    """Return a report for each well-formed key in the texts, without duplicates.

    `place` is where the reporter found the texts. Returns at most MAX_REPORTS_AT_ONCE reports.
    """
    keys = (parse_key(match[0]) for text in texts for match in KEY_PATTERN.finditer(text))
    keys_by_text = {key.text: key for key in keys if key is not None}
    versions = range(1, PEPPER_VERSION + 1)
    return [
        LeakReport(
            lookup_id=key.lookup_id,
            digests=tuple(compute_key_digest(key, pepper_version=version) for version in versions),
            place=_clean_place(place),
        )
        for key in list(keys_by_text.values())[:MAX_REPORTS_AT_ONCE]
    ]


def enqueue_reports(connection: redis.Redis, reports: list[LeakReport]) -> None:
    """Queue reports. Raises redis.RedisError, and Conflict when too many are waiting."""
    if reports and int(connection.llen(REPORT_QUEUE)) > MAX_WAITING:
        raise Conflict("Too many reports are waiting. Try again in a minute.")
    if reports:
        connection.rpush(REPORT_QUEUE, *map(msgspec.msgpack.encode, reports))


def peek_reports(connection: redis.Redis, *, limit: int) -> list[bytes]:
    """Return up to `limit` encoded reports from the front of the queue, and leave them there."""
    reports: list[bytes] = connection.lrange(REPORT_QUEUE, 0, limit - 1)  # type: ignore[assignment]
    return reports


def delete_report(connection: redis.Redis, data: bytes) -> None:
    connection.lrem(REPORT_QUEUE, 1, data)  # type: ignore[arg-type]  # the stubs want str


def requeue_report(connection: redis.Redis, data: bytes) -> None:
    """Move a report to the end of the queue."""
    pipeline = connection.pipeline(transaction=True)
    pipeline.rpush(REPORT_QUEUE, data)
    # Remove one occurrence, counted from the front: the old one.
    pipeline.lrem(REPORT_QUEUE, 1, data)  # type: ignore[arg-type]
    pipeline.execute()


def decode_report(data: bytes) -> LeakReport:
    """Decode a queued report. Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=LeakReport)


def _clean_place(text: str) -> str:
    """Return the place in printable ASCII, without keys: a URL may contain the leaked key."""
    return _UNPRINTABLE.sub(" ", KEY_PATTERN.sub("cpk_...", text))[:_MAX_PLACE_CHARS]
