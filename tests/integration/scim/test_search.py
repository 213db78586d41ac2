"""SCIM filters give the same result whether SQL or Python evaluates them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from pytest_django import DjangoDbBlocker

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.scim import queries, search
from tenants.models import ScimGroupMember
from tests.fixtures.companies import Cast, Company, make_company
from tests.integration.scim.provider import Provider, make_provider
from tests.integration.scim.test_request_limits import make_scim_users
from tests.stack.services import Services

# Filters that SQL can express, and the number of users that each finds.
BY_COLUMN = {
    'userName eq "ADA@acme.example"': 1,
    'externalId eq "ext-1"': 1,
    'externalId eq "EXT-1"': 0,
    'displayName eq "ada LOVELACE"': 1,
    'emails.value eq "ADA@second.example"': 1,
    'emails eq "ada@second.example"': 1,
    'emails[value eq "ada@second.example"]': 1,
    'emails[type eq "home" and value eq "ada@second.example"]': 1,
    'emails[type eq "work"].value eq "ada@second.example"': 0,
    'displayName eq "Ada Lovelace" and active eq false': 0,
    'userName eq "bob@acme.example" or emails.value eq "ada@second.example"': 2,
    'not (displayName eq "Ada Lovelace") and userName eq "bob@acme.example"': 1,
    'displayName eq "100%"': 1,
    'displayName eq "a_b"': 0,
    'emails.value eq "%"': 0,
    'emails.value eq "work"': 0,
    'id eq "nonsense"': 0,
    'urn:ietf:params:scim:schemas:core:2.0:User:userName eq "bob@acme.example"': 1,
}
# Filters that only Python can evaluate.
NOT_BY_COLUMN = [
    'displayName co "ada"',
    'emails.value eq "\\"quoted\\"@acme.example"',
    'emails.value eq "zoë@acme.example"',
    'userName eq "bob@acme.example" or displayName sw "Ada"',
    'not (userName eq "bob@acme.example")',
    "active eq true",
    'meta.version eq "none"',
    'displayName eq "\\ud800"',
]

GO_GROUP_FILTER = quote('displayName eq "Go people"')


@pytest.fixture(scope="module")
def provider_with_users(services: Services, django_db_blocker: DjangoDbBlocker) -> Provider:
    """Return a provider that has created four users. Tests search them and change nothing."""
    with django_db_blocker.unblock():
        provider = make_provider(make_company("searched", {Role.OWNER: "olga"}))
        ada = {"value": "Ada@acme.example", "type": "work", "primary": True}
        second = {"value": "ada@Second.example", "type": "home"}
        zoe = {"value": "zoë@acme.example"}
        quoted = {"value": '"quoted"@acme.example'}
        provider.create_user(
            "ada@acme.example", externalId="ext-1", displayName="Ada Lovelace", emails=[ada, second]
        )
        provider.create_user("bob@acme.example", displayName="100%", emails=[zoe])
        provider.create_user("eve@acme.example", displayName="aXb")
        provider.create_user("joe@acme.example", emails=[quoted], active=False)
    return provider


@dataclass(frozen=True, slots=True)
class SearchedGroups:
    """The groups of a tenant, with the IDs of the user ada and of her group "Go people"."""

    provider: Provider
    ada: str
    go: str


@pytest.fixture(scope="module")
def groups(services: Services, django_db_blocker: DjangoDbBlocker) -> SearchedGroups:
    """Create three groups. Tests search them and change nothing."""
    with django_db_blocker.unblock():
        provider = make_provider(make_company("grouped", {Role.OWNER: "olga"}))
        ada = provider.create_user("ada@acme.example")["id"]
        bob = provider.create_user("bob@acme.example")["id"]
        go = provider.create_group("Go people", ada, bob)["id"]
        provider.create_group("Rust people", bob)
        provider.create_group("Nobody else")
    return SearchedGroups(provider, ada, go)


@contextmanager
def evaluate_in_python() -> Iterator[None]:
    """Let the server evaluate filters in Python, as if SQL could express none of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_translate_filter", lambda *_: None)
        yield


def find_ids(provider: Provider, kind: str, text: str, suffix: str = "") -> list[str]:
    """Return the IDs of the `kind` (Users or Groups) that the filter `text` finds."""
    response = provider.request("GET", f"{kind}?filter={quote(text)}{suffix}")
    assert response.status_code == 200, response.content
    return [resource["id"] for resource in response.json().get("Resources", [])]


@pytest.mark.parametrize("text", [*BY_COLUMN, *NOT_BY_COLUMN])
def test_user_filters_give_the_same_result_in_sql_and_python(
    provider_with_users: Provider, text: str
) -> None:
    with evaluate_in_python():
        expected = find_ids(provider_with_users, "Users", text)

    assert find_ids(provider_with_users, "Users", text) == expected


def test_common_filters_find_the_expected_number_of_users(provider_with_users: Provider) -> None:
    num_found = {text: len(find_ids(provider_with_users, "Users", text)) for text in BY_COLUMN}

    assert num_found == BY_COLUMN


@pytest.mark.parametrize(
    "text",
    [
        *('displayName eq "GO people"', 'displayName eq "nobody"', 'members eq "{ada}"'),
        *('members.value eq "{ada}"', 'members.value eq "nonsense"', 'displayName sw "Go"'),
        'id eq "{go}" and members eq "{ada}"',
        *('members[value eq "{ada}"]', "members pr", 'externalId eq "x"'),
    ],
)
def test_group_filters_give_the_same_result_in_sql_and_python(
    groups: SearchedGroups, text: str
) -> None:
    has_id = "{" in text  # the filter names ada or the Go group
    filter_text = text.format(ada=groups.ada, go=groups.go) if has_id else text
    with evaluate_in_python():
        expected = find_ids(groups.provider, "Groups", filter_text)

    for suffix in ("", "&excludedAttributes=members"):
        assert find_ids(groups.provider, "Groups", filter_text, suffix) == expected
    if has_id:
        assert expected == [groups.go]


def test_indexed_filters_have_no_search_limit(company: Company, provider: Provider) -> None:
    make_scim_users(company, search.MAX_SEARCHED + 1)

    for text in (
        *('userName eq "user-7"', 'externalId eq "x"', 'displayName eq "x"'),
        *('emails.value eq "x@y.example"', 'userName eq "user-7" and active eq true'),
    ):
        assert provider.request("GET", f"Users?filter={quote(text)}").status_code == 200, text


def test_another_tenants_users_are_not_found(provider_with_users: Provider, cast: Cast) -> None:
    other_provider = make_provider(cast.globex)

    assert find_ids(provider_with_users, "Users", next(iter(BY_COLUMN)))
    assert [text for text in BY_COLUMN if find_ids(other_provider, "Users", text)] == []


def test_excluding_members_keeps_the_etag_and_reads_no_members(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = provider.create_group("Go people", provider.create_user("ada@acme.example")["id"])
    address = f"Groups/{group['id']}"
    with_members = provider.request("GET", address)

    # From here on, reading members raises an error.
    monkeypatch.delattr(queries, "_find_group_members")
    without_members = provider.request("GET", f"{address}?excludedAttributes=members")
    by_name = provider.request("GET", f"Groups?filter={GO_GROUP_FILTER}&attributes=id")

    assert without_members["ETag"] == with_members["ETag"] == group["meta"]["version"]
    assert by_name.json()["Resources"][0]["id"] == group["id"]


@pytest.mark.parametrize(
    ("query", "has_members"),
    [
        ("attributes=displayName", False),
        ("attributes=members.value", True),
        ("attributes=urn:ietf:params:scim:schemas:core:2.0:Group:Members", True),
        ("excludedAttributes=Members", False),
        ("excludedAttributes=members.display", True),
        ("", True),
    ],
)
def test_members_are_included_only_if_requested(
    provider: Provider, query: str, has_members: bool
) -> None:
    group = provider.create_group("Go people", provider.create_user("ada@acme.example")["id"])

    single_group = provider.request("GET", f"Groups/{group['id']}?{query}").json()
    (listed_group,) = provider.request("GET", f"Groups?{query}").json()["Resources"]

    assert ("members" in single_group) == has_members
    assert ("members" in listed_group) == has_members


def test_the_etag_changes_with_the_members(company: Company, provider: Provider) -> None:
    ada = provider.create_user("ada@acme.example")["id"]
    group = provider.create_group("Go people", ada)
    before = provider.request("GET", f"Groups/{group['id']}?attributes=displayName")["ETag"]

    with tenant_scope(company.tenant_id):
        ScimGroupMember.objects.filter(team_id=group["id"]).delete()

    assert provider.request("GET", f"Groups/{group['id']}?attributes=displayName")["ETag"] != before


def test_pages_of_a_sorted_search_are_consecutive(company: Company, provider: Provider) -> None:
    make_scim_users(company, 7)
    query = "filter=userName%20pr&sortBy=userName&count=3"

    pages = [provider.request("GET", f"Users?{query}&startIndex={n}").json() for n in (1, 4, 7)]

    names = [resource["userName"] for page in pages for resource in page["Resources"]]
    assert names == [f"user-{index}" for index in range(7)]
    assert {page["totalResults"] for page in pages} == {7}
