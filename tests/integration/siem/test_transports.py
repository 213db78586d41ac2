"""Audit entries are sent to real servers: by syslog or webhook, with and without TLS.

The audit log of a new company has six entries. Adding its first sink writes the seventh.
"""

import asyncio
import json
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tenants.compliance.audit_sinks.delivery import TLS_FAILED, Destination, SinkDeliveryError
from tenants.compliance.audit_sinks.delivery_worker import deliver_due_entries
from tenants.compliance.audit_sinks.endpoint import SinkKind, parse_address
from tenants.compliance.audit_sinks.messages import TEST, SinkMessage
from tenants.compliance.audit_sinks.secret_storage import create_secret
from tenants.compliance.audit_sinks.syslog import send_syslog
from tenants.compliance.audit_sinks.webhook import webhook_sender
from tests.fakes.certificate import certificate_for_loopback
from tests.fakes.dns import fake_dns
from tests.fakes.siem_servers import Hook, Syslog, syslog_server, webhook
from tests.fixtures.companies import Company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import (
    add_entries,
    attach_syslog,
    attach_webhook,
    get_sink,
)
from tests.stack.waiting import wait_until

LOOPBACK = [ip_network("127.0.0.0/8")]


def test_syslog_gets_every_entry_over_one_connection(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    add_entries(company, 3)

    deliver_due_entries(clock=clock)

    assert syslog.sequences == list(range(1, 11))
    assert syslog.num_connections == 1
    last_line = syslog.lines[-1]  # a syslog header, and then the entry as JSON
    assert json.loads(last_line[last_line.index("{") :])["after"] == {"name": "Zoë"}
    assert get_sink(company).num_waiting == 0


def test_entries_are_sent_again_after_a_syslog_disconnection(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    syslog.resets_connections = True
    deliver_due_entries(clock=clock)
    assert get_sink(company).last_error == "The receiver is not reachable."

    syslog.resets_connections = False
    clock.advance(seconds=6)  # a sink is first retried after 5
    deliver_due_entries(clock=clock)

    assert syslog.sequences == list(range(1, 8))


def test_syslog_over_tls_requires_a_valid_certificate(
    company: Company, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = certificate_for_loopback(tmp_path)
    with syslog_server(context) as syslog:
        attach_syslog(company, syslog, scheme="syslog+tls")
        deliver_due_entries(clock=clock)
        assert get_sink(company).last_error == "The TLS certificate is not valid."

        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        clock.advance(seconds=6)  # a sink is first retried after 5
        deliver_due_entries(clock=clock)

        assert syslog.sequences == list(range(1, 8))
        assert get_sink(company).num_waiting == 0


@pytest.mark.parametrize("scheme", ["syslog+tcp", "syslog+tls"])
def test_a_delivery_succeeds_if_the_receiver_keeps_the_connection_open(
    company: Company,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    context, authority = certificate_for_loopback(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.setattr("tenants.compliance.audit_sinks.syslog._CLOSE_TIMEOUT_S", 1.0)
    with syslog_server(context if scheme == "syslog+tls" else None) as syslog:
        syslog.keeps_connections = True
        attach_syslog(company, syslog, scheme=scheme)

        deliver_due_entries(clock=clock)

        wait_until(lambda: len(syslog.lines) >= 7, timeout_s=60)
    assert syslog.sequences == list(range(1, 8))
    assert (get_sink(company).last_error, get_sink(company).num_waiting) == ("", 0)


def test_webhooks_over_tls_require_a_valid_certificate(
    company: Company, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = certificate_for_loopback(tmp_path)
    with webhook(context) as hook:
        attach_webhook(company, hook)
        deliver_due_entries(clock=clock)
        assert get_sink(company).last_error == "The TLS certificate is not valid."

        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        clock.advance(seconds=6)  # a sink is first retried after 5
        deliver_due_entries(clock=clock)

        assert hook.sequences == list(range(1, 8))


@pytest.mark.parametrize("scheme", ["https", "syslog+tls"])
def test_a_receiver_without_tls_is_not_reported_as_a_bad_certificate(
    scheme: str, hook: Hook
) -> None:
    address = f"{scheme}://{urlsplit(hook.url).netloc}"

    with pytest.raises(SinkDeliveryError, match=TLS_FAILED):
        asyncio.run(send_test_message(address, create_secret(SinkKind.WEBHOOK) or ""))


@pytest.mark.parametrize("kind", SinkKind)
def test_unresponsive_dns_does_not_delay_other_sinks(
    kind: SinkKind, hook: Hook, syslog: Syslog
) -> None:
    hook.secret = create_secret(SinkKind.WEBHOOK) or ""
    good_address, silent_pattern = {
        SinkKind.SYSLOG: (f"syslog+tcp://siem.known.test:{syslog.port}", "syslog+tcp://{}"),
        SinkKind.WEBHOOK: (hook.url.replace("127.0.0.1", "siem.known.test"), "http://{}/"),
    }[kind]

    async def send_all() -> None:
        # More look-ups than an event loop has threads on any machine.
        addresses = [silent_pattern.format(f"{number}.silent.test") for number in range(40)]
        hanging_sends = [
            asyncio.create_task(send_test_message(address, hook.secret)) for address in addresses
        ]
        await asyncio.sleep(0.2)  # until all of them wait for DNS
        try:
            await send_test_message(good_address, hook.secret)
        finally:
            for hanging_send in hanging_sends:
                hanging_send.cancel()
            await asyncio.gather(*hanging_sends, return_exceptions=True)

    with fake_dns():  # names in known.test resolve; look-ups of names in silent.test hang
        asyncio.run(send_all())

    assert (syslog.sequences or hook.sequences) == [7]


async def send_test_message(text: str, secret: str) -> None:
    address = parse_address(text, LOOPBACK)
    message = SinkMessage(
        id="x", kind=TEST, at="2026-11-21T12:00:00Z", sequence=None, data={"sequence": 7}
    )
    if address.kind is SinkKind.SYSLOG:
        await send_syslog(Destination(address, secret=None, networks=LOOPBACK), [message])
        return
    destination = Destination(address, secret, LOOPBACK)
    async with webhook_sender(destination, lambda: datetime.now(UTC)) as sender:
        await sender.send_message(message)
