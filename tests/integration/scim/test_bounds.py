"""Limits on the requests of one tenant's identity provider."""

import uuid
from contextlib import ExitStack

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.scim.base_view import PLACES
from console.scim.resource_views import MAX_FILTER_CHARS, MAX_OPERATIONS, MAX_VALUES
from tenants.identity.scim.groups import MAX_CHANGED_MEMBERS, MAX_TRIED_MEMBERS
from tenants.identity.scim.search import MAX_RESULTS, MAX_SEARCHED
from tenants.models import ScimUser
from tests.fixtures.companies import Cast, Company
from tests.integration.scim.provider import GROUP, USER, Provider, provider_of


def make_many(company: Company, number: int) -> list[str]:
    """Make SCIM records of users who have no account."""
    now = timezone.now()
    rows = [
        ScimUser(
            tenant_id=company.tenant_id,
            id=uuid.uuid4(),
            user_name=f"user-{index}",
            external_id="",
            email="",
            active=True,
            document={"userName": f"user-{index}"},
            created_at=now,
            changed_at=now,
        )
        for index in range(number)
    ]
    with tenant_scope(company.tenant_id):
        ScimUser.objects.bulk_create(rows)
    return [str(row.id) for row in rows]


def test_a_page_holds_so_many(company: Company, provider: Provider) -> None:
    make_many(company, MAX_RESULTS + 1)

    page = provider.ask("GET", "Users?count=100000").json()

    assert (page["itemsPerPage"], page["totalResults"]) == (MAX_RESULTS, MAX_RESULTS + 1)


@pytest.mark.parametrize("start", ["100000000000000000000000", "-5"])
def test_a_page_that_is_not_there_is_empty_or_the_first(provider: Provider, start: str) -> None:
    assert provider.ask("GET", f"Users?startIndex={start}").status_code == 200


def test_what_no_index_knows_is_looked_for_among_so_many(
    company: Company, provider: Provider
) -> None:
    make_many(company, MAX_SEARCHED + 1)

    for query in ("filter=displayName pr", "sortBy=userName"):
        response = provider.ask("GET", f"Users?{query}")
        assert (response.status_code, response.json()["scimType"]) == (400, "tooMany")
    assert provider.ask("GET", 'Users?filter=userName eq "user-7"').json()["totalResults"] == 1


def test_a_long_filter_is_refused(provider: Provider) -> None:
    text = " or ".join(['userName eq "x"'] * (MAX_FILTER_CHARS // 10))

    response = provider.ask("GET", f"Users?filter={text}")

    assert (response.status_code, response.json()["scimType"]) == (400, "invalidFilter")


def test_so_many_members_come_and_go_with_one_request(company: Company, provider: Provider) -> None:
    ids = make_many(company, MAX_CHANGED_MEMBERS + 1)
    body = {"schemas": [GROUP], "displayName": "All", "members": [{"value": one} for one in ids]}

    refused = provider.ask("POST", "Groups", body)
    group = provider.make_group("All", *ids[1:])
    added = provider.patch(
        f"Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": ids[0]}]}
    )

    assert (refused.status_code, added.status_code) == (400, 200)
    assert len(added.json()["members"]) == MAX_CHANGED_MEMBERS + 1


def test_a_patch_has_so_many_operations(provider: Provider) -> None:
    group = provider.make_group("Platform")
    operation = {"op": "replace", "path": "displayName", "value": "x"}

    response = provider.patch(f"Groups/{group['id']}", *[operation] * (MAX_OPERATIONS + 1))

    assert response.status_code == 400
    assert provider.ask("GET", f"Groups/{group['id']}").json()["displayName"] == "Platform"


def test_a_patch_has_so_many_values(provider: Provider) -> None:
    group = provider.make_group("Platform")
    value = [{"value": str(uuid.uuid4())} for _ in range(MAX_VALUES)]

    response = provider.patch(
        f"Groups/{group['id']}", {"op": "add", "path": "members", "value": value}
    )

    assert response.status_code == 400
    assert "values" in response.json()["detail"]


def test_many_leave_a_large_group_at_once(company: Company, provider: Provider) -> None:
    ids = make_many(company, MAX_CHANGED_MEMBERS)
    group = provider.make_group("All", *ids)
    removals = [{"op": "Remove", "path": f'members[value eq "{one}"]'} for one in ids[:99]]

    response = provider.patch(f"Groups/{group['id']}", *removals)

    assert response.status_code == 200
    assert {one["value"] for one in response.json()["members"]} == set(ids[99:])


def test_what_would_take_too_long_is_refused(company: Company, provider: Provider) -> None:
    ids = make_many(company, MAX_CHANGED_MEMBERS)
    group = provider.make_group("All", *ids)
    tried = [{"op": "remove", "path": f'members[value sw "{one}"]'} for one in ids[:60]]

    response = provider.patch(f"Groups/{group['id']}", *tried)

    assert (response.status_code, 60 * len(ids) > MAX_TRIED_MEMBERS) == (400, True)


def test_so_much_is_kept_of_a_person(provider: Provider) -> None:
    emails = [{"value": f"a{index}@x.example"} for index in range(1_000)]

    response = provider.ask("POST", "Users", {"schemas": [USER], "userName": "a", "emails": emails})

    assert response.status_code == 400


def test_a_large_body_is_refused(provider: Provider) -> None:
    body = {"schemas": [USER], "userName": "a", "displayName": "x" * 1024 * 1024}

    assert provider.ask("POST", "Users", body).status_code == 413


def test_one_tenants_requests_hold_few_places(
    company: Company, provider: Provider, cast: Cast
) -> None:
    neighbour = provider_of(cast.globex)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(PLACES.acquire(company.tenant_id))
        refused, taken = provider.ask("GET", "Users"), neighbour.ask("GET", "Users")

    assert (refused.status_code, refused["Retry-After"], taken.status_code) == (429, "5", 200)
    assert provider.ask("GET", "Users").status_code == 200
