"""Audit entries in the form that sinks receive, one message each.

A message contains the whole audit entry. A gap in the sequence shows a lost message, and the hashes
show whether the log was rewritten. An entry always has the same ID, by which receivers drop
duplicates.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from caret.foundation.crypto.canonical_json import canonicalize
from tenants.models import AuditEntry
from tenants.security.audit.hash_chain import build_document

# The kinds of messages, as receivers see them.
ENTRY: Final = "audit.entry"
TEST: Final = "audit.test"
# Facility 13, log audit; severity 6, informational (RFC 5424, 6.2.1).
_PRIORITY: Final = 13 * 8 + 6
_MAX_SEQUENCE_ID: Final = 2**31 - 1  # RFC 5424, 7.3.1; the number after it is 1


@dataclass(frozen=True, slots=True)
class SinkMessage:
    id: str  # the same for each delivery of an entry
    kind: str  # ENTRY or TEST
    at: str  # RFC 3339
    sequence: int | None  # None: a test message
    data: dict[str, Any]  # JSON


def build_message(entry: AuditEntry) -> SinkMessage:
    document = build_document(entry)
    return SinkMessage(
        id=document["id"],
        kind=ENTRY,
        at=document["at"],
        sequence=entry.sequence,
        data={**document, "hash": bytes(entry.hash).hex()},
    )


def build_webhook_body(message: SinkMessage) -> str:
    """Return the payload in the format of Standard Webhooks."""
    payload = {"type": message.kind, "timestamp": message.at, "data": message.data}
    return canonicalize(payload).decode()


def build_syslog_frame(message: SinkMessage) -> bytes:
    """Return an RFC 5424 message prefixed by its length (RFC 5425, 4.3).

    Non-ASCII characters are escaped as in JSON, so that the text needs no byte order mark.
    """
    structured_data = "-"
    if message.sequence is not None:
        sequence_id = (message.sequence - 1) % _MAX_SEQUENCE_ID + 1
        structured_data = f'[meta sequenceId="{sequence_id}"]'
    text = json.dumps(message.data, separators=(",", ":"), sort_keys=True)
    # The priority, the version 1, the time, no host name, the application, no process ID, the
    # message ID, the structured data and the message.
    header = f"<{_PRIORITY}>1 {message.at} - caret - {message.kind} {structured_data}"
    line = f"{header} {text}".encode("ascii")
    return b"%d %b" % (len(line), line)
