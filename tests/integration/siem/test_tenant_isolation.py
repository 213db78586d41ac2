"""A sink gets only its tenant's entries, cannot reach internal networks, and keeps its secret."""

from ipaddress import ip_network
from typing import Any

from structlog.testing import capture_logs

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.audit_sinks.delivery_worker import deliver_due_entries
from tenants.compliance.audit_sinks.operations import NewSink, create_sink
from tenants.models import AuditSink
from tests.fakes.siem_servers import Hook, webhook
from tests.fixtures.companies import Company, make_company
from tests.integration.siem.clock import Clock
from tests.integration.siem.sink_fixtures import add_entries, attach_webhook, get_sink


def test_entries_are_sent_only_to_the_tenants_own_sinks(
    company: Company, hook: Hook, clock: Clock
) -> None:
    attach_webhook(company, hook)
    other_company = make_company("neighbour", {})
    add_entries(other_company, 3)

    deliver_due_entries(clock=clock)

    assert {payload["data"]["tenant_id"] for payload in hook.payloads} == {company.tenant_id}


def test_no_redirect_is_followed(company: Company, hook: Hook, clock: Clock) -> None:
    with webhook() as redirect_target:
        attach_webhook(company, hook)
        hook.statuses, hook.headers = [307], {"Location": redirect_target.url}

        deliver_due_entries(clock=clock)

        assert redirect_target.num_requests == 0
    assert get_sink(company).last_error == "The receiver responded with status 307."


def test_a_name_that_resolves_to_an_internal_address_is_refused(
    company: Company, hook: Hook, clock: Clock, settings: Any
) -> None:
    """`localhost` stands for a name that an attacker resolves to an internal address."""
    address = hook.url.replace("http://127.0.0.1", "https://localhost")
    new = NewSink(name="x", address=address, from_sequence=1)
    settings.PRIVATE_TARGETS = []
    create_sink(actor=company.administrator.actor, new=new, now=clock())

    deliver_due_entries(clock=clock)

    assert hook.num_requests == 0
    assert get_sink(company).last_error.startswith("The address is neither public")


def test_networks_that_are_no_longer_allowed_are_refused(
    company: Company, hook: Hook, clock: Clock, settings: Any
) -> None:
    attach_webhook(company, hook)
    settings.PRIVATE_TARGETS = [ip_network("10.20.0.0/16")]

    deliver_due_entries(clock=clock)

    assert hook.num_requests == 0
    assert get_sink(company).last_error


def test_neither_log_nor_table_contains_secrets(company: Company, hook: Hook, clock: Clock) -> None:
    attach_webhook(company, hook)
    hook.statuses = [500]

    with capture_logs() as logs:
        deliver_due_entries(clock=clock)

    with tenant_scope(company.tenant_id):
        row = str(AuditSink.objects.values().get())
    for text in (str(logs), row):
        assert "planted-path" not in text  # a part of the webhook's address
        assert hook.secret not in text
        assert hook.secret.removeprefix("whsec_") not in text
    tenant_logs = [log for log in logs if log.get("tenant_id") == company.tenant_id]
    assert [log["event"] for log in tenant_logs] == ["audit.delivery_failed"]
