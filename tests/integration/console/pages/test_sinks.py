"""Audit sinks are created, tested, replayed and deleted on the console's pages.

A sink sends the audit log to a system of the customer.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from caret.foundation.concurrency.bulkhead import BulkheadFull
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.outbound_limit import OUTBOUND_LIMIT
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks
from tenants.models import AuditSink
from tenants.security.audit.queries import find_head
from tests.fakes.siem_servers import Hook, webhook
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

WRITERS = {Role.OWNER, Role.ADMINISTRATOR}
OLD, FUTURE = 1_000, 2_000_000_000  # Unix times of 1970 and 2033


@pytest.fixture(autouse=True)
def _loopback_may_be_called(settings: Any) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def company() -> Iterator[Company]:
    company = make_company("initech", ACME_PEOPLE)
    yield company
    # Tests of the delivery must not deliver to these sinks, whose servers have ended.
    with tenant_scope(company.tenant_id):
        AuditSink.objects.all().delete()


@pytest.fixture
def alice(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in_with_step_up(company.administrator)


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Run a webhook server until the test ends."""
    with webhook() as hook:
        yield hook


def list_audit_sinks(company: Company) -> list[SinkView]:
    return list_sinks(actor=company.administrator.actor, limit=50, cursor=None).rows


def post_sink(client: Client, hook: Hook, **fields: str) -> Any:
    return client.post("/audit-sinks/new", {"name": "Splunk", "address": hook.url} | fields)


@pytest.mark.parametrize("role", list(Role))
def test_auditors_read_sinks_and_administrators_create_them(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(company.people[role])

    may_read = role in WRITERS | {Role.AUDITOR}
    assert client.get("/audit-sinks").status_code == (200 if may_read else 403)
    assert client.get("/audit-sinks/new").status_code == (200 if role in WRITERS else 403)
    assert ('href="/audit-sinks/new"' in client.get("/audit-sinks").content.decode()) == (
        role in WRITERS
    )


def test_a_webhooks_secret_is_shown_once(company: Company, alice: Client, hook: Hook) -> None:
    created = post_sink(alice, hook)

    assert re.search(r"whsec_[\w+/]+=", created.content.decode()) is not None
    (sink,) = list_audit_sinks(company)
    for path in ("/audit-sinks", f"/audit-sinks/{sink.id}"):
        page = alice.get(path).content.decode()
        assert "Splunk" in page
        assert "whsec_" not in page


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"address": "ftp://siem.example"}, "address"),
        ({"address": ""}, "address"),
        ({"from_sequence": "0"}, "from_sequence"),
        ({"from_sequence": "100000"}, "from_sequence"),  # beyond the end of the log
    ],
)
def test_an_invalid_value_gets_an_error_at_its_field(
    company: Company, alice: Client, hook: Hook, fields: dict[str, str], field: str
) -> None:
    answer = post_sink(alice, hook, **fields)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert re.findall(r'class="wrong" id="id_(\w+)_error"', page) == [field]
    assert list_audit_sinks(company) == []


def test_a_duplicate_name_is_refused_and_keeps_the_input(
    company: Company, alice: Client, hook: Hook
) -> None:
    post_sink(alice, hook)

    answer = post_sink(alice, hook)

    assert answer.status_code == 400
    assert hook.url in answer.content.decode()
    assert len(list_audit_sinks(company)) == 1


def test_a_test_message_reports_success_or_failure(
    company: Company, alice: Client, hook: Hook
) -> None:
    secret = re.search(r"whsec_[\w+/=]+", post_sink(alice, hook).content.decode())
    assert secret is not None
    hook.secret = secret[0]
    (sink,) = list_audit_sinks(company)

    success_page = alice.post(f"/audit-sinks/{sink.id}/test", follow=True).content.decode()
    hook.statuses = [500]
    failure_page = alice.post(f"/audit-sinks/{sink.id}/test", follow=True).content.decode()

    assert "Test message delivered." in success_page
    assert "toast-error" in failure_page


def test_too_many_test_messages_at_one_time_are_refused(
    company: Company, alice: Client, hook: Hook
) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)

    with ExitStack() as held_slots:
        with suppress(BulkheadFull):
            while True:
                held_slots.enter_context(OUTBOUND_LIMIT.acquire(company.tenant_id))
        page = alice.post(f"/audit-sinks/{sink.id}/test", follow=True).content.decode()

    assert "Too many outgoing requests right now." in page


def test_the_list_shows_that_a_new_sink_has_no_deliveries(
    company: Company, alice: Client, hook: Hook
) -> None:
    post_sink(alice, hook)

    page = alice.get("/audit-sinks").content.decode()

    assert "nothing yet" in page
    assert "up to entry" not in page


def test_a_replay_starts_from_a_given_entry(company: Company, alice: Client, hook: Hook) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)
    with tenant_scope(company.tenant_id):
        last = find_head(tenant_id=company.tenant_id).sequence

    assert sink.delivered_sequence > 0  # a new sink gets only new entries

    alice.post(f"/audit-sinks/{sink.id}/replay", {"from_sequence": "1"})
    refused_replay = alice.post(f"/audit-sinks/{sink.id}/replay", {"from_sequence": str(last + 50)})

    assert list_audit_sinks(company)[0].delivered_sequence == 0
    assert refused_replay.status_code == 400
    assert f'value="{last + 50}"' in refused_replay.content.decode()


def test_deleting_a_sink_requires_a_step_up(
    company: Company, sign_in: SignIn, alice: Client, hook: Hook
) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)
    path = f"/audit-sinks/{sink.id}/delete"

    answer = sign_in(company.administrator).post(path)

    assert answer["Location"].startswith("/account/confirm?next=")
    assert len(list_audit_sinks(company)) == 1


@pytest.mark.parametrize(
    ("session_values", "next_step"),
    [
        ({"account_authentication_methods": [{"method": "password", "at": OLD}]}, "confirm"),
        ({"signed-in-by-provider-at": OLD}, "reauthenticate"),
        ({"signed-in-by-provider-at": FUTURE}, None),  # recent: needs no confirmation
    ],
)
def test_an_old_sign_in_must_be_confirmed_by_the_same_method(
    company: Company,
    alice: Client,
    hook: Hook,
    session_values: dict[str, Any],
    next_step: str | None,
) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)
    session = alice.session
    session["account_authentication_methods"] = []  # no step-up; the user stays signed in
    if "signed-in-by-provider-at" in session_values:
        session["signed-in-by-provider"] = str(company.tenant_id)
    session.update(session_values)
    session.save()

    answer = alice.get(f"/audit-sinks/{sink.id}/delete")

    assert (answer.status_code == 200) == (next_step is None)
    if next_step is not None:
        assert answer["Location"].startswith(f"/account/{next_step}?next=")


def test_deleting_a_sink_asks_for_confirmation_and_reports_success(
    company: Company, alice: Client, hook: Hook
) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)
    path = f"/audit-sinks/{sink.id}/delete"

    confirmation = alice.get(path).content.decode()
    done = alice.post(path, follow=True).content.decode()

    assert "Delete Splunk?" in confirmation
    assert "Splunk deleted. No more entries are sent to it." in done
    assert list_audit_sinks(company) == []


@pytest.mark.parametrize("action", ["", "/test", "/replay", "/delete"])
def test_another_tenants_sink_is_not_found(
    company: Company, alice: Client, sign_in_with_step_up: SignIn, hook: Hook, action: str
) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)
    bob = sign_in_with_step_up(make_company("hooli", GLOBEX_PEOPLE).administrator)

    for sink_id in (sink.id, uuid.uuid4()):
        send = bob.post if action else bob.get
        assert send(f"/audit-sinks/{sink_id}{action}", {"from_sequence": "1"}).status_code == 404
    assert len(list_audit_sinks(company)) == 1


def test_the_pages_run_few_queries(company: Company, alice: Client, hook: Hook) -> None:
    post_sink(alice, hook)
    (sink,) = list_audit_sinks(company)

    for path in ("/audit-sinks", f"/audit-sinks/{sink.id}"):
        with few_queries():
            alice.get(path)
