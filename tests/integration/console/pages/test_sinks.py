"""The audit sinks' pages: create, test, replay, delete after a confirmation."""

import re
import uuid
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.compliance.audit_sinks.queries import SinkView, list_sinks
from tenants.models import AuditSink
from tenants.security.audit.queries import find_head
from tests.fakes.siem_servers import Hook, webhook
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

PUSHERS = {Role.OWNER, Role.ADMINISTRATOR}


@pytest.fixture(autouse=True)
def _loopback_is_ours(settings: Any) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def company() -> Iterator[Company]:
    company = make_company("initech", ACME)
    yield company
    with tenant_scope(company.tenant_id):
        AuditSink.objects.all().delete()


@pytest.fixture
def alice(company: Company, sign_in_now: SignIn) -> Client:
    return sign_in_now(company.administrator)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as hook:
        yield hook


def sinks(company: Company) -> list[SinkView]:
    return list_sinks(actor=company.administrator.actor, limit=50, cursor=None).rows


def make(client: Client, hook: Hook, **fields: str) -> Any:
    return client.post("/audit-sinks/new", {"name": "Splunk", "address": hook.url} | fields)


@pytest.mark.parametrize("role", list(Role))
def test_auditors_see_sinks_and_administrators_make_them(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(company.people[role])

    reads = role in PUSHERS | {Role.AUDITOR}
    assert client.get("/audit-sinks").status_code == (200 if reads else 403)
    assert client.get("/audit-sinks/new").status_code == (200 if role in PUSHERS else 403)
    assert ('href="/audit-sinks/new"' in client.get("/audit-sinks").content.decode()) == (
        role in PUSHERS
    )


def test_a_webhooks_secret_is_shown_once(company: Company, alice: Client, hook: Hook) -> None:
    made = make(alice, hook)

    assert re.search(r"whsec_[\w+/]+=", made.content.decode()) is not None
    (sink,) = sinks(company)
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
        ({"from_sequence": "100000"}, "from_sequence"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    company: Company, alice: Client, hook: Hook, fields: dict[str, str], field: str
) -> None:
    answer = make(alice, hook, **fields)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert re.findall(r'class="wrong" id="id_(\w+)_error"', page) == [field]
    assert sinks(company) == []


def test_a_name_is_one_sinks_only_and_what_was_typed_stays(
    company: Company, alice: Client, hook: Hook
) -> None:
    make(alice, hook)

    answer = make(alice, hook)

    assert answer.status_code == 400
    assert hook.url in answer.content.decode()
    assert len(sinks(company)) == 1


def test_a_test_says_what_came_of_it(company: Company, alice: Client, hook: Hook) -> None:
    secret = re.search(r"whsec_[\w+/=]+", make(alice, hook).content.decode())
    assert secret is not None
    hook.secret = secret[0]
    (sink,) = sinks(company)

    well = alice.post(f"/audit-sinks/{sink.id}/test", follow=True).content.decode()
    hook.statuses = [500]
    badly = alice.post(f"/audit-sinks/{sink.id}/test", follow=True).content.decode()

    assert "Test message delivered." in well
    assert "toast-error" in badly


def test_entries_are_pushed_again_from_a_number_on(
    company: Company, alice: Client, hook: Hook
) -> None:
    make(alice, hook)
    (sink,) = sinks(company)
    with tenant_scope(company.tenant_id):
        last = find_head(tenant_id=company.tenant_id).sequence

    alice.post(f"/audit-sinks/{sink.id}/replay", {"from_sequence": "1"})
    refused = alice.post(f"/audit-sinks/{sink.id}/replay", {"from_sequence": str(last + 50)})

    assert sinks(company)[0].delivered_sequence == 0
    assert refused.status_code == 400
    assert f'value="{last + 50}"' in refused.content.decode()


def test_deleting_asks_who_is_there(
    company: Company, sign_in: SignIn, alice: Client, hook: Hook
) -> None:
    make(alice, hook)
    (sink,) = sinks(company)
    path = f"/audit-sinks/{sink.id}/delete"

    answer = sign_in(company.administrator).post(path)

    assert answer["Location"].startswith("/account/confirm?next=")
    assert len(sinks(company)) == 1


@pytest.mark.parametrize(
    ("remembered", "way"),
    [
        ({"account_authentication_methods": [{"method": "password", "at": 1_000}]}, "confirm"),
        ({"signed-in-by-provider-at": 1_000}, "reauthenticate"),
        ({"signed-in-by-provider-at": 2_000_000_000}, None),
    ],
)
def test_who_signed_in_long_ago_confirms_the_way_he_came(
    company: Company, alice: Client, hook: Hook, remembered: dict[str, Any], way: str | None
) -> None:
    make(alice, hook)
    (sink,) = sinks(company)
    session = alice.session
    session["account_authentication_methods"] = []  # the user's key in the session remains
    if "signed-in-by-provider-at" in remembered:
        session["signed-in-by-provider"] = str(company.tenant_id)
    session.update(remembered)
    session.save()

    answer = alice.get(f"/audit-sinks/{sink.id}/delete")

    assert (answer.status_code == 200) == (way is None)
    if way is not None:
        assert answer["Location"].startswith(f"/account/{way}?next=")


def test_deleting_asks_first_and_then_says_so(company: Company, alice: Client, hook: Hook) -> None:
    make(alice, hook)
    (sink,) = sinks(company)
    path = f"/audit-sinks/{sink.id}/delete"

    asked = alice.get(path).content.decode()
    done = alice.post(path, follow=True).content.decode()

    assert "Delete Splunk?" in asked
    assert "Splunk deleted. It gets no more entries." in done
    assert sinks(company) == []


@pytest.mark.parametrize("what", ["", "/test", "/replay", "/delete"])
def test_a_neighbours_sink_is_not_there(
    company: Company, alice: Client, sign_in_now: SignIn, hook: Hook, what: str
) -> None:
    make(alice, hook)
    (sink,) = sinks(company)
    bob = sign_in_now(make_company("hooli", GLOBEX).administrator)

    for sink_id in (sink.id, uuid.uuid4()):
        ask = bob.post if what else bob.get
        assert ask(f"/audit-sinks/{sink_id}{what}", {"from_sequence": "1"}).status_code == 404
    assert len(sinks(company)) == 1


def test_the_pages_take_few_queries(company: Company, alice: Client, hook: Hook) -> None:
    make(alice, hook)
    (sink,) = sinks(company)

    for path in ("/audit-sinks", f"/audit-sinks/{sink.id}"):
        with few_queries():
            alice.get(path)
