"""Syslog and TLS, with real servers."""

import json
from pathlib import Path

import pytest

from tenants.siem.push import push_due
from tests.cast import Company
from tests.fakes.sinks import Syslog, certificate_for_loopback, syslog_server, webhook
from tests.integration.siem.attached import add, attach, attach_syslog, state
from tests.integration.siem.clock import Clock


def test_syslog_gets_every_entry_over_one_connection(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    add(company, 3)

    push_due(clock=clock)

    assert syslog.sequences == list(range(1, 11))
    assert syslog.num_connections == 1
    assert json.loads(syslog.lines[-1][syslog.lines[-1].index("{") :])["after"] == {"name": "Zoë"}
    assert state(company).num_waiting == 0


def test_a_syslog_server_that_breaks_off_gets_it_again(
    company: Company, syslog: Syslog, clock: Clock
) -> None:
    attach_syslog(company, syslog)
    syslog.breaks_off = True
    push_due(clock=clock)
    assert state(company).last_error == "It cannot be reached."

    syslog.breaks_off = False
    clock.turn(seconds=6)
    push_due(clock=clock)

    assert syslog.sequences == list(range(1, 8))


def test_syslog_over_tls(
    company: Company, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = certificate_for_loopback(tmp_path)
    with syslog_server(context) as syslog:
        attach_syslog(company, syslog, scheme="syslog+tls")
        push_due(clock=clock)
        assert state(company).last_error == "Its certificate does not hold."

        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        clock.turn(seconds=6)
        push_due(clock=clock)

        assert syslog.sequences == list(range(1, 8))
        assert state(company).num_waiting == 0


def test_webhooks_over_tls(
    company: Company, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, authority = certificate_for_loopback(tmp_path)
    with webhook(context) as hook:
        attach(company, hook)
        push_due(clock=clock)
        assert state(company).last_error == "Its certificate does not hold."

        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        clock.turn(seconds=6)
        push_due(clock=clock)

        assert hook.sequences == list(range(1, 8))
