"""Audit sinks over REST: create, test, replay, delete; secrets are shown once.

An audit sink is a receiver of the audit log, such as a webhook or a syslog server of the customer.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.outbound_limit import OUTBOUND_LIMIT
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.operations import MAX_NAME_CHARS
from tenants.models import AuditEntry, AuditSink
from tenants.security.encryption.queries import find_destruction_proofs
from tests.fakes.siem_servers import Hook, make_sink, syslog_server, webhook
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn

PATH = "/api/v1/audit/sinks"


@pytest.fixture(autouse=True)
def _loopback_may_be_called(settings: Any) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def company() -> Iterator[Company]:
    """Yield a company whose audit log has six entries: of the tenant and its five members."""
    company = make_company("initech", ACME_PEOPLE, records_additions=True)
    yield company
    # Tests of the delivery must not deliver to these sinks, whose servers have ended.
    with tenant_scope(company.tenant_id):
        AuditSink.objects.all().delete()


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Run a webhook server until the test ends."""
    with webhook() as hook:
        yield hook


def post(client: Client, path: str = PATH, /, **body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def list_audit_entries(company: Company, action: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(AuditEntry.objects.filter(action=action).select_related("actor"))


def test_a_sinks_secret_is_shown_only_on_creation(
    company: Company, alice: Client, hook: Hook
) -> None:
    created = post(alice, name="Splunk", address=hook.url)

    assert created.status_code == 201
    secret = created.json()["secret"]
    assert secret.startswith("whsec_")
    sink_list = alice.get(PATH).content.decode()
    (entry,) = list_audit_entries(company, "audit_sink.created")
    for text in (sink_list, json.dumps(entry.after), entry.target):
        assert secret not in text
        assert "planted-path" not in text  # in the URL, which may contain a secret


def test_the_list_shows_the_delivery_state_of_a_sink(alice: Client, hook: Hook) -> None:
    post(alice, name="Splunk", address=hook.url, from_sequence=1)

    (sink,) = alice.get(PATH).json()["items"]

    assert (sink["name"], sink["kind"]) == ("Splunk", "webhook")
    assert sink["origin"] == hook.url.removesuffix("/hook/planted-path")
    # Creating the company wrote six audit entries, and creating the sink wrote the seventh.
    assert (sink["delivered_sequence"], sink["num_waiting"]) == (0, 7)
    assert (sink["failed_since"], sink["last_error"]) == (None, "")


def test_a_test_message_is_delivered_and_audited(
    company: Company, alice: Client, hook: Hook
) -> None:
    created = post(alice, name="Splunk", address=hook.url).json()
    hook.secret = created["secret"]

    answer = post(alice, f"{PATH}/{created['sink']['id']}/test")

    assert answer.json() == {"delivered": True, "error": ""}
    assert [payload["type"] for payload in hook.payloads] == ["audit.test"]
    (entry,) = list_audit_entries(company, "audit_sink.tested")
    assert entry.after == {"delivered": True, "error": ""}


def test_a_test_message_is_delivered_over_syslog(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sender waits until the receiver has read everything.
    monkeypatch.setattr("tenants.compliance.audit_sinks.syslog.TIMEOUT_S", 90.0)
    monkeypatch.setattr("tenants.compliance.audit_sinks.syslog._CLOSE_TIMEOUT_S", 60.0)
    with syslog_server() as syslog:
        address = f"syslog+tcp://127.0.0.1:{syslog.port}"
        created = post(alice, name="logs", address=address).json()

        answer = post(alice, f"{PATH}/{created['sink']['id']}/test")

        assert answer.json()["delivered"]
        assert "audit.test" in syslog.lines[0]
    assert created["secret"] is None


def test_a_failed_test_message_reports_the_error(alice: Client, hook: Hook) -> None:
    created = post(alice, name="Splunk", address=hook.url).json()
    hook.statuses = [503]

    answer = post(alice, f"{PATH}/{created['sink']['id']}/test")

    assert answer.json() == {"delivered": False, "error": "The receiver responded with status 503."}


def test_a_replay_moves_the_cursor_back_and_is_audited(
    company: Company, alice: Client, hook: Hook
) -> None:
    created = post(alice, name="Splunk", address=hook.url).json()

    answer = post(alice, f"{PATH}/{created['sink']['id']}/replay", from_sequence=3)

    # Entries 3 to 8 wait: creating the sink wrote entry 7, and the replay wrote entry 8.
    assert (answer.json()["delivered_sequence"], answer.json()["num_waiting"]) == (2, 6)
    (entry,) = list_audit_entries(company, "audit_sink.replayed")
    assert (entry.before, entry.after) == ({"delivered_sequence": 6}, {"delivered_sequence": 2})


def test_deleting_a_sink_destroys_its_encryption_key(
    company: Company, alice: Client, hook: Hook
) -> None:
    sink_id = post(alice, name="Splunk", address=hook.url).json()["sink"]["id"]

    assert alice.delete(f"{PATH}/{sink_id}").status_code == 204

    assert alice.get(PATH).json()["items"] == []
    (evidence,) = find_destruction_proofs(
        tenant_id=company.tenant_id, scope=f"audit-sink:{sink_id}"
    )
    assert evidence.destroyed_at is not None
    assert len(list_audit_entries(company, "audit_sink.deleted")) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "address": "https://siem.example/"}, "name"),
        ({"name": "x" * (MAX_NAME_CHARS + 1), "address": "https://siem.example/"}, "name"),
        ({"name": "\0", "address": "https://siem.example/"}, "name"),
        ({"name": "x", "address": "ftp://siem.example/"}, "address"),
        ({"name": "x", "address": "https://10.0.0.1/"}, "address"),
        ({"name": "x", "address": "https://siem.example/", "from_sequence": 0}, "from_sequence"),
        ({"name": "x", "address": "https://siem.example/", "from_sequence": 99}, "from_sequence"),
        ({"name": "x", "address": "https://siem.example/", "secret": "x"}, "secret"),
    ],
)
def test_an_invalid_sink_is_rejected_with_the_fields_name(
    alice: Client, body: dict[str, Any], field: str
) -> None:
    answer = post(alice, **body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert alice.get(PATH).json()["items"] == []


def test_a_duplicate_name_is_a_conflict(alice: Client, hook: Hook) -> None:
    post(alice, name="Splunk", address=hook.url)

    answer = post(alice, name="Splunk", address=hook.url)

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize("from_sequence", [0, 99, 2**60])
def test_a_replay_from_an_invalid_entry_is_rejected(
    alice: Client, hook: Hook, from_sequence: int
) -> None:
    created = post(alice, name="Splunk", address=hook.url).json()

    answer = post(alice, f"{PATH}/{created['sink']['id']}/replay", from_sequence=from_sequence)

    assert (answer.status_code, answer.json()["field"]) == (422, "from_sequence")


def test_another_tenants_sink_is_not_found(company: Company, cast: Cast, sign_in: SignIn) -> None:
    sink_id = make_sink(company)
    bob = sign_in(cast.globex.administrator)

    assert sink_id not in bob.get(PATH).content.decode()
    assert post(bob, f"{PATH}/{sink_id}/test").status_code == 404
    assert post(bob, f"{PATH}/{sink_id}/replay", from_sequence=1).status_code == 404
    assert bob.delete(f"{PATH}/{sink_id}").status_code == 404


def test_each_tenant_has_a_limit_of_concurrent_sink_tests(
    company: Company, alice: Client, hook: Hook
) -> None:
    sink_id = post(alice, name="Splunk", address=hook.url).json()["sink"]["id"]
    with ExitStack() as held_slots:
        for _ in range(8):  # the limit of each tenant
            held_slots.enter_context(OUTBOUND_LIMIT.acquire(company.tenant_id))

        refused_test = post(alice, f"{PATH}/{sink_id}/test")

    assert (refused_test.status_code, refused_test.json()["code"]) == (
        429,
        "too_many_concurrent_requests",
    )
    assert refused_test["Retry-After"] == "5"
    assert post(alice, f"{PATH}/{sink_id}/test").status_code == 200


def test_the_limit_of_concurrent_requests_covers_domain_verification(
    company: Company, sign_in: SignIn
) -> None:
    olga = sign_in(company.people[Role.OWNER])
    domain = post(olga, "/api/v1/domains", name=f"{company.slug}.example").json()
    with ExitStack() as held_slots:
        for _ in range(8):  # the limit of each tenant
            held_slots.enter_context(OUTBOUND_LIMIT.acquire(company.tenant_id))

        refused_check = post(olga, f"/api/v1/domains/{domain['id']}/verify")

    assert refused_check.status_code == 429


def test_the_limit_of_another_tenant_is_independent(
    company: Company, alice: Client, hook: Hook
) -> None:
    sink_id = post(alice, name="Splunk", address=hook.url).json()["sink"]["id"]
    with ExitStack() as held_slots:
        for _ in range(8):  # the limit of each tenant
            held_slots.enter_context(OUTBOUND_LIMIT.acquire("a neighbour"))

        assert post(alice, f"{PATH}/{sink_id}/test").status_code == 200
