"""Audit sinks, the servers to which audit entries are sent: addresses, messages and retries."""

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest

from tenants.base.errors import InvalidValue
from tenants.compliance.audit_sinks.backoff import compute_sink_backoff, compute_slow_sink_pause
from tenants.compliance.audit_sinks.endpoint import SinkKind, parse_address
from tenants.compliance.audit_sinks.messages import (
    TEST,
    SinkMessage,
    build_message,
    build_syslog_frame,
    build_webhook_body,
)
from tenants.models import AuditEntry
from tenants.security.audit.hash_chain import GENESIS, hash_document

ALLOWED_NETWORKS = [ip_network("10.20.0.0/16")]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def entry(sequence: int = 7) -> AuditEntry:
    return AuditEntry(
        tenant_id=uuid.UUID(int=1),
        id=uuid.UUID(int=sequence),
        sequence=sequence,
        previous_hash=GENESIS,
        hash=bytes([sequence % 256]) * 32,
        actor_kind="platform",
        action="key.created",
        target="key:x",
        after={"name": "Zoë\n[x]"},
        actor_key="",
        request_id="",
        reason="",
        at=NOON,
    )


@pytest.mark.parametrize(
    ("text", "kind", "port", "origin"),
    [
        ("https://siem.example/a/b?c=d", SinkKind.WEBHOOK, 443, "https://siem.example:443"),
        ("https://siem.example:8088/", SinkKind.WEBHOOK, 8088, "https://siem.example:8088"),
        ("http://10.20.0.1/", SinkKind.WEBHOOK, 80, "http://10.20.0.1:80"),
        ("syslog+tls://logs.example", SinkKind.SYSLOG, 6514, "syslog+tls://logs.example:6514"),
        ("syslog+tcp://10.20.0.1:1514", SinkKind.SYSLOG, 1514, "syslog+tcp://10.20.0.1:1514"),
        ("https://Siem_1.example./", SinkKind.WEBHOOK, 443, "https://siem_1.example.:443"),
        ("https://[2606:4700::1]/", SinkKind.WEBHOOK, 443, "https://[2606:4700::1]:443"),
    ],
)
def test_an_address_is_parsed(text: str, kind: SinkKind, port: int, origin: str) -> None:
    address = parse_address(text, ALLOWED_NETWORKS)

    assert (address.kind, address.port, address.origin) == (kind, port, origin)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "siem.example",
        "ftp://siem.example/",
        "file:///etc/passwd",
        "https:siem.example",
        "https://",
        "https:///x",
        "https://user:password@siem.example/",
        "https://user@siem.example/",
        "https://siem.example/#x",
        "https://siem.example:0x50/",
        "https://siem.example:70000/",
        "https://siem example/",
        "https://siem.example/\r\nHost: x",
        "https://siém.example/",
        "https://siem..example/",
        "https://.example/",
        "syslog+tls://siem..example",
        "syslog+tls://" + "x" * 64 + ".example",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:127.0.0.1]/",
        "https://10.0.0.1/",
        "http://93.184.215.14/",
        "syslog+tls://logs.example/path",
        "syslog+tcp://93.184.215.14:514",
        "https://siem.example/" + "x" * 1_000,
    ],
)
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        parse_address(text, ALLOWED_NETWORKS)

    assert exc_info.value.field == "address"


@pytest.mark.parametrize("text", ["http://siem.example/", "syslog+tcp://logs.example"])
def test_unencrypted_addresses_are_rejected_without_allowed_networks(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_address(text, [])


def test_the_repr_of_an_address_does_not_contain_its_path() -> None:
    assert "planted" not in repr(parse_address("https://siem.example/planted", []))


def test_a_webhook_contains_the_complete_entry() -> None:
    payload = json.loads(build_webhook_body(build_message(entry())))

    assert (payload["type"], payload["timestamp"]) == ("audit.entry", "2026-11-21T12:00:00.000000Z")
    assert payload["data"]["sequence"] == 7
    assert payload["data"]["hash"] == "07" * 32
    assert hash_document(payload["data"]) == hash_document(build_message(entry()).data)


def test_the_message_id_depends_only_on_the_entry() -> None:
    assert build_message(entry()).id == build_message(entry()).id
    assert build_message(entry()).id != build_message(entry(8)).id


def test_a_syslog_message_has_the_rfc_5424_format_with_its_length_first() -> None:
    frame = build_syslog_frame(build_message(entry())).decode("ascii")

    length, _, line = frame.partition(" ")
    assert int(length) == len(line)
    # The priority 110 is the facility 13, an audit log, and the severity 6, informational.
    match = re.fullmatch(
        r'<110>1 2026-11-21T12:00:00\.000000Z - caret - audit\.entry \[meta sequenceId="7"\] (.*)',
        line,
    )
    assert match is not None
    assert json.loads(match[1]) == build_message(entry()).data


def test_a_syslog_sequence_restarts_at_its_maximum() -> None:
    assert b'sequenceId="1"' in build_syslog_frame(build_message(entry(2**31)))


def test_a_syslog_test_message_has_no_sequence() -> None:
    message = SinkMessage(
        id="x", kind=TEST, at="2026-11-21T12:00:00Z", sequence=None, data={"kind": "test"}
    )

    assert b"- caret - audit.test - {" in build_syslog_frame(message)


def test_retry_delays_double_up_to_an_hour() -> None:
    waits = [
        compute_sink_backoff(failures).total_seconds() for failures in (1, 2, 3, 10, 11, 10_000)
    ]

    assert waits == [5, 10, 20, 2_560, 3_600, 3_600]


def test_a_fast_sink_is_not_paused() -> None:
    assert compute_slow_sink_pause(timedelta(seconds=0.2), num_delivered=0) is None


def test_a_slow_sink_is_paused_for_three_times_as_long_as_it_took() -> None:
    pause = compute_slow_sink_pause(timedelta(seconds=4), num_delivered=1)

    assert pause == timedelta(seconds=12)


def test_a_sink_that_received_many_entries_is_not_slow() -> None:
    assert compute_slow_sink_pause(timedelta(seconds=4), num_delivered=200) is None
