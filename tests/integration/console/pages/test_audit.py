"""The audit log's pages: the changes, their actors, and the check of the chain."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect
from tenants.base.redis_lock import redis_lock
from tenants.security.audit import chain_check
from tenants.security.audit.operations import record_change
from tenants.security.audit.queries import find_head
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

READERS = {Role.OWNER, Role.ADMINISTRATOR, Role.AUDITOR}


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME)


@pytest.fixture
def audrey(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.people[Role.AUDITOR])


def change(company: Company, number: int = 1, action: str = "door.painted") -> None:
    with tenant_scope(company.tenant_id):
        record_change(
            actor=company.administrator.actor,
            action=action,
            target=f"door:{number}",
            change=({"colour": "red", "height": 2}, {"colour": "<b>blue", "height": 2}),
            now=timezone.now(),
            reason="It was time.",
        )


def shown(client: Client, **query: str) -> str:
    return client.get("/audit", query).content.decode()


def targets(page: str) -> list[str]:
    return re.findall(r'class="entry-target">(door:\d+)<', page)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", ["/audit", "/audit/verify"])
def test_who_may_read_the_trail_sees_it(
    company: Company, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(company.people[role])

    assert client.get(path).status_code == (200 if role in READERS else 403)
    assert ('href="/audit"' in client.get("/").content.decode()) == (role in READERS)


def test_an_entry_shows_before_and_after_and_why(company: Company, audrey: Client) -> None:
    change(company)

    page = shown(audrey, action="door.painted")

    assert "- colour: &quot;red&quot;" in page
    assert "+ colour: &quot;&lt;b&gt;blue&quot;" in page
    assert "height: 2" not in page
    assert "It was time." in page
    assert company.administrator.email in page


def test_that_somebody_looked_is_the_newest_entry(company: Company, audrey: Client) -> None:
    shown(audrey)

    assert "audit.read" in shown(audrey)


@pytest.mark.parametrize(
    ("asked", "is_there"),
    [
        ({"target": "door:7"}, True),
        ({"target": "door:8"}, False),
        ({"actor": "platform"}, False),
        ({"actor": "nobody@initech.example"}, False),
        ({"first": "2020-01-01"}, True),
        ({"last": "2020-01-01"}, False),
    ],
)
def test_the_filters_leave_what_is_asked_for(
    company: Company, audrey: Client, asked: dict[str, str], is_there: bool
) -> None:
    change(company, 7)

    assert (targets(shown(audrey, action="door.painted", **asked)) == ["door:7"]) == is_there


def test_an_address_stands_for_its_owner(company: Company, audrey: Client) -> None:
    change(company, 7)

    assert targets(shown(audrey, actor=company.administrator.email))
    assert not targets(shown(audrey, actor=company.developer.email))


@pytest.mark.parametrize(
    "asked",
    [
        {"actor": "what?"},
        {"first": "yesterday"},
        {"first": "2026-02-02", "last": "2026-01-01"},
        {"first": "0001-01-01"},
        {"last": "9999-12-31"},
        {"cursor": "zzz"},
        {"action": "x" * 61},
        {"target": "\0"},
    ],
)
def test_what_cannot_be_asked_is_said_and_kept(audrey: Client, asked: dict[str, str]) -> None:
    answer = audrey.get("/audit", asked)

    assert answer.status_code == 400
    field, text = next(iter(asked.items()))
    if field in ("actor", "first"):
        assert f'value="{text}"' in answer.content.decode()


def test_older_entries_are_a_link_away(company: Company, audrey: Client) -> None:
    for number in range(53):
        change(company, number)

    first = shown(audrey, action="door.painted")
    older = re.search(r'href="([^"]+)"><span>Older', first)
    assert older is not None
    rest = audrey.get(older[1].replace("&amp;", "&")).content.decode()

    assert [*targets(first), *targets(rest)] == [f"door:{number}" for number in range(52, -1, -1)]
    assert "Newest" in rest


def test_htmx_is_answered_with_the_list_alone(company: Company, audrey: Client) -> None:
    answer = audrey.get("/audit", headers={"HX-Request": "true"}).content.decode()

    assert "<html" not in answer
    assert 'class="entries"' in answer


def test_the_list_takes_few_queries(company: Company, audrey: Client) -> None:
    change(company)

    with few_queries():
        shown(audrey)


def test_the_neighbour_sees_none_of_it(company: Company, sign_in: SignIn) -> None:
    change(company, 7)
    neighbour = make_company("hooli", GLOBEX)

    page = shown(sign_in(neighbour.administrator), target="door:7")

    assert not targets(page)


def test_a_check_that_stopped_goes_on_when_asked(
    company: Company, audrey: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "MAX_ENTRIES", 4)
    change(company, 3)

    first = audrey.post("/audit/verify").content.decode()
    second = audrey.post("/audit/verify", {"after": "4"}).content.decode()

    assert "Entries 1 to 4 form an unbroken chain" in first
    assert 'name="after" value="4"' in first
    assert "Entries 5 to " in second or ", 5 to " in second


@pytest.mark.parametrize("after", ["-1", "x", "9" * 5_000, "10000000000000000000000"])
def test_a_check_from_nowhere_makes_no_sense(audrey: Client, after: str) -> None:
    assert audrey.post("/audit/verify", {"after": after}).status_code == 400


def test_a_second_check_at_once_is_told_to_wait(company: Company, audrey: Client) -> None:
    with redis_lock(connect(), f"audit-check:{company.tenant_id}"):
        answer = audrey.post("/audit/verify")

    assert answer.status_code == 409
    assert "A verification is already running" in answer.content.decode()


def test_the_chain_is_checked_when_asked(company: Company, audrey: Client) -> None:
    asked = audrey.get("/audit/verify").content.decode()
    with tenant_scope(company.tenant_id):
        last = find_head(tenant_id=company.tenant_id).sequence

    page = audrey.post("/audit/verify").content.decode()

    assert "Verified: no entry was changed" not in asked
    assert "Verified: no entry was changed" in page
    assert f"{last + 1} entries (1 to {last + 1})" in page
