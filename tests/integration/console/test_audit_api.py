"""The audit log over REST: pages, filters, and the entry that a read leaves."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.ids import LookupId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import PagePosition, encode_cursor
from tenants.base.permissions import Role
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, OperatorIdentity
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn

PATH = "/api/v1/audit"
CURSOR_OF_NO_ENTRY = encode_cursor(PagePosition(datetime(2026, 3, 1, tzinfo=UTC), UUID(int=2**127)))


@pytest.fixture
def company() -> Company:
    """Return a company whose audit log has an entry for each of its five members."""
    return make_company("initech", ACME_PEOPLE, records_additions=True)


@pytest.fixture
def auditor(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.people[Role.AUDITOR])


def record_test_change(actor: Actor, *, action: str = "test.done", days_ago: int = 0) -> None:
    with tenant_scope(actor.tenant_id):
        record_change(
            actor=actor,
            action=action,
            target="test:1",
            change=(None, {"x": 1}),
            now=timezone.now() - timedelta(days=days_ago),
        )


def list_rows(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(PATH, query)
    assert answer.status_code == 200, answer.content
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_entries_are_listed_in_the_order_of_the_chain_if_the_clock_is_set_back(
    company: Company, auditor: Client
) -> None:
    for days_ago in (0, 3, 1):
        record_test_change(company.administrator.actor, days_ago=days_ago)

    # The pages have two entries each.
    page = auditor.get(f"{PATH}?action=test.done&limit=2").json()
    rest = list_rows(auditor, action="test.done", limit=2, cursor=page["next_cursor"])

    sequences = [entry["sequence"] for entry in page["items"] + rest]
    assert len(sequences) == 3
    assert sequences == sorted(sequences, reverse=True)


def test_a_cursor_of_an_earlier_release_continues_after_its_entry(
    company: Company, auditor: Client
) -> None:
    """An export that is running during the upgrade has such a cursor."""
    for _ in range(3):
        record_test_change(company.administrator.actor)
    newest = list_rows(auditor, action="test.done")[0]
    at, entry_id = datetime.fromisoformat(newest["at"]), UUID(newest["id"])

    rows = list_rows(auditor, action="test.done", cursor=encode_cursor(PagePosition(at, entry_id)))

    assert [row["sequence"] for row in rows] == [newest["sequence"] - 1, newest["sequence"] - 2]


def test_entries_are_listed_newest_first_with_actor_and_address(
    company: Company, auditor: Client
) -> None:
    record_test_change(company.administrator.actor)

    first = list_rows(auditor)[0]

    assert (first["action"], first["actor_kind"]) == ("test.done", "user")
    assert first["actor_email"] == company.administrator.email
    assert (first["address"], first["after"], first["before"]) == ("192.0.2.7", {"x": 1}, None)
    assert len(first["hash"]) == 64  # the hexadecimal digits of a SHA-256 digest


def test_reading_the_log_adds_an_entry_with_its_reader(company: Company, auditor: Client) -> None:
    list_rows(auditor, action="key.created")

    entry = list_rows(auditor)[0]
    assert (entry["action"], entry["after"]) == ("audit.read", {"action": "key.created"})
    assert entry["actor_email"] == company.people[Role.AUDITOR].email
    assert entry["request_id"]


def test_pages_list_each_entry_once(company: Company, auditor: Client) -> None:
    sequences: list[int] = []
    query: dict[str, Any] = {"limit": 2, "action": "member.added"}
    while True:
        page = auditor.get(PATH, query).json()
        sequences += [row["sequence"] for row in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert sequences == [6, 5, 4, 3, 2]  # the five members; entry 1 is of the tenant itself


@pytest.mark.parametrize("lookup_id", ["Ab3dE6gH", "scim:0f3a9c2b71de"])
@pytest.mark.parametrize("kind", ["user", "key", "platform"])
def test_entries_are_found_by_their_actor(
    company: Company, auditor: Client, kind: str, lookup_id: str
) -> None:
    alice = company.administrator
    key_actor = Actor(
        company.tenant_id,
        user_id=None,
        role=Role.DEVELOPER,
        address=None,
        request_id="",
        key=LookupId(lookup_id),
    )
    for actor in (alice.actor, key_actor, company.platform):
        record_test_change(actor)
    actor_filter = {"user": alice.user_id, "key": lookup_id, "platform": "platform"}[kind]

    entries = list_rows(auditor, actor=actor_filter, action="test.done")

    assert [row["actor_kind"] for row in entries] == [kind]


@pytest.mark.parametrize("handle", ["ola", "key:3Fq81xZb"])
def test_entries_of_an_operator_are_found_by_the_handle_or_key(
    company: Company, auditor: Client, handle: str
) -> None:
    operator = OperatorIdentity(handle, can_change=True)
    actor = Actor(
        company.tenant_id,
        user_id=None,
        role=Role.DEVELOPER,
        address=None,
        request_id="",
        operator=operator,
    )
    record_test_change(actor)

    entries = list_rows(auditor, actor=f"operator:{handle}", action="test.done")

    assert [row["actor_key"] for row in entries] == [f"operator:{handle}"]


def test_entries_are_found_by_target_and_period(company: Company, auditor: Client) -> None:
    for days in (3, 2, 1):
        record_test_change(company.platform, action=f"test.{days}", days_ago=days)
    now = timezone.now()

    entries = list_rows(
        auditor,
        target="test:1",
        since=(now - timedelta(days=2, hours=1)).isoformat(),
        until=(now - timedelta(days=1, hours=1)).isoformat(),
    )

    assert [row["action"] for row in entries] == ["test.2"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("actor", "nobody"),
        ("cursor", "x"),
        ("cursor", CURSOR_OF_NO_ENTRY),
        ("limit", "0"),
        ("since", "yesterday"),
        ("since", "2026-11-21T12:00:00"),
        ("since", "0001-01-01T00:00:00+14:00"),
        ("until", "9999-12-31T23:59:59-12:00"),
        ("target", "\0"),
    ],
)
def test_an_invalid_filter_is_rejected_with_its_name(
    auditor: Client, field: str, value: str
) -> None:
    answer = auditor.get(PATH, {field: value})

    assert answer.status_code == 422
    assert answer.json()["field"] == field


def test_the_error_for_an_invalid_actor_names_the_accepted_forms(auditor: Client) -> None:
    detail = auditor.get(PATH, {"actor": "nobody"}).json()["detail"]

    for accepted in ("user ID", "lookup ID", "as the audit log names it", "platform"):
        assert accepted in detail


def test_another_tenant_reads_only_its_own_log(
    company: Company, cast: Cast, sign_in: SignIn
) -> None:
    record_test_change(company.administrator.actor)
    bob = sign_in(cast.globex.administrator)

    assert list_rows(bob, actor=company.administrator.user_id) == []
    assert company.slug not in bob.get(PATH).content.decode()
