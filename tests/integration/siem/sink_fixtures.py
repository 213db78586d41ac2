"""A company's audit sinks, and audit entries for them.

An audit sink is a webhook or a syslog server, for example a SIEM, to which entries are pushed.
"""

import secrets
from datetime import UTC, datetime

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks
from tenants.security.audit.operations import record_change
from tests.fakes.siem_servers import Hook, Syslog
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company


def make_neighbour() -> Company:
    """Return another company. Its audit log has six entries, as that of the test's company has."""
    return make_company("neighbour", ACME_PEOPLE, records_additions=True)


def attach_webhook(company: Company, hook: Hook, *, from_sequence: int | None = 1) -> SinkView:
    """Add a sink that gets the entries from `from_sequence` on; None: only later entries."""
    new = NewSink(name=secrets.token_hex(4), address=hook.url, from_sequence=from_sequence)
    created = create_sink(actor=company.administrator.actor, new=new, now=datetime.now(UTC))
    assert created.secret is not None
    hook.secret = created.secret
    return created.sink


def attach_syslog(company: Company, syslog: Syslog, *, scheme: str = "syslog+tcp") -> None:
    address = f"{scheme}://127.0.0.1:{syslog.port}"
    new = NewSink(name="logs", address=address, from_sequence=1)
    create_sink(actor=company.administrator.actor, new=new, now=datetime.now(UTC))


def add_entries(company: Company, count: int = 1) -> None:
    with tenant_scope(company.tenant_id):
        for _ in range(count):
            record_change(
                actor=company.platform,
                action="test.done",
                target="t",
                change=(None, {"name": "Zoë"}),
                now=datetime.now(UTC),
            )


def get_sink(company: Company) -> SinkView:
    (sink,) = list_sinks(actor=company.platform, limit=10, cursor=None).rows
    return sink
