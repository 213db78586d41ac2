from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientTimeout

from tests.integration.siem.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.siem_servers import Hook, Syslog
    from tests.fixtures.companies import Company


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres."""


@pytest.fixture(autouse=True)
def _allow_loopback(settings: Any) -> None:
    """Let sinks be on this machine: Caret refuses private addresses by default."""
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]


@pytest.fixture(autouse=True)
def _long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for receivers for longer: other tests may use all cores."""
    monkeypatch.setattr("tenants.compliance.audit_sinks.syslog.TIMEOUT_S", 90.0)
    monkeypatch.setattr("tenants.compliance.audit_sinks.syslog._CLOSE_TIMEOUT_S", 60.0)
    monkeypatch.setattr("tenants.compliance.audit_sinks.webhook._TIMEOUT", ClientTimeout(90.0))


@pytest.fixture
def company() -> Iterator[Company]:
    # Imported here: pytest may load this file before Django is set up.
    from caret.foundation.postgres.tenant_scope import tenant_scope
    from tenants.models import AuditSink
    from tests.fixtures.companies import ACME_PEOPLE, make_company

    company = make_company("initech", ACME_PEOPLE, records_additions=True)
    yield company
    # The next test must push only its own entries.
    with tenant_scope(company.tenant_id):
        AuditSink.objects.all().delete()


@pytest.fixture
def hook() -> Iterator[Hook]:
    from tests.fakes.siem_servers import webhook

    with webhook() as hook:
        yield hook


@pytest.fixture
def syslog() -> Iterator[Syslog]:
    from tests.fakes.siem_servers import syslog_server

    with syslog_server() as syslog:
        yield syslog


@pytest.fixture
def clock() -> Clock:
    return Clock()
