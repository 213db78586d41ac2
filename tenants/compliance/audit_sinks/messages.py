"""An audit entry as a sink gets it, in one message each.

The whole document is in it, with its sequence (who gets 7 after 5 has lost 6), its hash and the
previous one (who keeps them can tell that the trail was not written anew). It always has the same
id, by which a receiver drops what it gets twice.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from tenants.models import AuditEntry
from tenants.security.audit.hash_chain import build_document

ENTRY: Final = "audit.entry"
TEST: Final = "audit.test"
# Facility 13, log audit; severity 6, informational (RFC 5424, 6.2.1).
_PRIORITY: Final = 13 * 8 + 6
_MAX_SEQUENCE_ID: Final = 2**31 - 1  # RFC 5424, 7.3.1: then it begins with 1 again


@dataclass(frozen=True, slots=True)
class SinkMessage:
    id: str
    kind: str  # ENTRY or TEST
    at: str  # RFC 3339
    sequence: int | None  # None: a test
    data: dict[str, Any]


def message_of(entry: AuditEntry) -> SinkMessage:
    document = build_document(entry)
    return SinkMessage(
        id=document["id"],
        kind=ENTRY,
        at=document["at"],
        sequence=entry.sequence,
        data={**document, "hash": bytes(entry.hash).hex()},
    )


def webhook_body(message: SinkMessage) -> str:
    """Standard Webhooks' own shape of a payload."""
    payload = {"type": message.kind, "timestamp": message.at, "data": message.data}
    return canonicalize(payload).decode()


def syslog_frame(message: SinkMessage) -> bytes:
    """RFC 5424 with its length in front (RFC 5425, 4.3). In ASCII: what is not is escaped as JSON
    does it, so that no byte order mark is needed before the text."""
    data = "-"
    if message.sequence is not None:
        sequence_id = (message.sequence - 1) % _MAX_SEQUENCE_ID + 1
        data = f'[meta sequenceId="{sequence_id}"]'
    text = json.dumps(message.data, separators=(",", ":"), sort_keys=True)
    line = f"<{_PRIORITY}>1 {message.at} - caret - {message.kind} {data} {text}".encode("ascii")
    return b"%d %b" % (len(line), line)
