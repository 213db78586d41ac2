"""Limits on the requests of one tenant's identity provider."""

import json
import uuid
from contextlib import ExitStack

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.api import rate_limit
from console.scim.base_view import REQUEST_SLOTS
from console.scim.resource_views import MAX_FILTER_CHARS, MAX_OPERATIONS, MAX_VALUES
from tenants.identity.scim.groups import MAX_CHANGED_MEMBERS, MAX_TRIED_MEMBERS
from tenants.identity.scim.search import MAX_RESULTS, MAX_SEARCHED
from tenants.identity.scim.users import MAX_DOCUMENT_CHARS
from tenants.models import ScimUser
from tests.fixtures.companies import Cast, Company
from tests.integration.scim.provider import GROUP, PATCH_SCHEMA, USER, Provider, make_provider


def make_scim_users(company: Company, count: int) -> list[str]:
    """Make SCIM records of users who have no account, and return their IDs."""
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
        for index in range(count)
    ]
    with tenant_scope(company.tenant_id):
        ScimUser.objects.bulk_create(rows)
    return [str(row.id) for row in rows]


def test_the_size_of_a_page_is_limited(company: Company, provider: Provider) -> None:
    make_scim_users(company, MAX_RESULTS + 1)

    page = provider.request("GET", "Users?count=100000").json()

    assert (page["itemsPerPage"], page["totalResults"]) == (MAX_RESULTS, MAX_RESULTS + 1)


@pytest.mark.parametrize("start", ["100000000000000000000000", "-5"])
def test_an_invalid_start_index_is_accepted(provider: Provider, start: str) -> None:
    assert provider.request("GET", f"Users?startIndex={start}").status_code == 200


def test_an_unindexed_search_is_refused_above_the_limit(
    company: Company, provider: Provider
) -> None:
    make_scim_users(company, MAX_SEARCHED + 1)

    for query in ("filter=displayName pr", "sortBy=userName"):
        response = provider.request("GET", f"Users?{query}")
        assert (response.status_code, response.json()["scimType"]) == (400, "tooMany")
    assert provider.request("GET", 'Users?filter=userName eq "user-7"').json()["totalResults"] == 1


def test_a_long_filter_is_refused(provider: Provider) -> None:
    # Each term has more than 10 characters.
    text = " or ".join(['userName eq "x"'] * (MAX_FILTER_CHARS // 10))

    response = provider.request("GET", f"Users?filter={text}")

    assert (response.status_code, response.json()["scimType"]) == (400, "invalidFilter")


def test_the_number_of_changed_members_per_request_is_limited(
    company: Company, provider: Provider
) -> None:
    ids = make_scim_users(company, MAX_CHANGED_MEMBERS + 1)
    body = {
        "schemas": [GROUP],
        "displayName": "All",
        "members": [{"value": user_id} for user_id in ids],
    }

    refusal = provider.request("POST", "Groups", body)
    group = provider.create_group("All", *ids[1:])
    added = provider.patch(
        f"Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": ids[0]}]}
    )

    assert (refusal.status_code, added.status_code) == (400, 200)
    assert len(added.json()["members"]) == MAX_CHANGED_MEMBERS + 1


def test_the_number_of_operations_in_a_patch_is_limited(provider: Provider) -> None:
    group = provider.create_group("Platform")
    operation = {"op": "replace", "path": "displayName", "value": "x"}

    response = provider.patch(f"Groups/{group['id']}", *[operation] * (MAX_OPERATIONS + 1))

    assert response.status_code == 400
    assert provider.request("GET", f"Groups/{group['id']}").json()["displayName"] == "Platform"


def test_operations_in_fields_that_differ_only_in_case_are_counted_together(
    provider: Provider,
) -> None:
    group = provider.create_group("Platform")
    operation = {"op": "replace", "path": "displayName", "value": "x"}
    # SCIM ignores the case of field names: `operations` and `Operations` are one field.
    body = {
        "schemas": [PATCH_SCHEMA],
        "operations": [],
        "Operations": [operation] * (MAX_OPERATIONS + 1),
    }

    response = provider.request("PATCH", f"Groups/{group['id']}", body)

    assert response.status_code == 400
    assert "operations" in response.json()["detail"]


def test_the_number_of_values_in_a_patch_is_limited(provider: Provider) -> None:
    group = provider.create_group("Platform")
    # With the operation itself, which counts too, there is one value too many.
    value = [{"value": str(uuid.uuid4())} for _ in range(MAX_VALUES)]

    response = provider.patch(
        f"Groups/{group['id']}", {"op": "add", "path": "members", "value": value}
    )

    assert response.status_code == 400
    assert "values" in response.json()["detail"]


def test_many_members_are_removed_from_a_large_group_at_once(
    company: Company, provider: Provider
) -> None:
    ids = make_scim_users(company, MAX_CHANGED_MEMBERS)
    group = provider.create_group("All", *ids)
    # A removal by ID is not tried on each member, so MAX_TRIED_MEMBERS does not apply.
    removed_ids, kept_ids = ids[:MAX_OPERATIONS], ids[MAX_OPERATIONS:]
    removals = [
        {"op": "Remove", "path": f'members[value eq "{user_id}"]'} for user_id in removed_ids
    ]

    response = provider.patch(f"Groups/{group['id']}", *removals)

    assert response.status_code == 200
    assert {member["value"] for member in response.json()["members"]} == set(kept_ids)


def test_a_patch_that_is_too_expensive_is_refused(company: Company, provider: Provider) -> None:
    ids = make_scim_users(company, MAX_CHANGED_MEMBERS)
    group = provider.create_group("All", *ids)
    removals = [{"op": "remove", "path": f'members[value sw "{user_id}"]'} for user_id in ids[:60]]

    response = provider.patch(f"Groups/{group['id']}", *removals)

    # Each of the 60 filters (`sw`: starts with) would be tried on each member.
    assert len(removals) * len(ids) > MAX_TRIED_MEMBERS
    assert response.status_code == 400


def test_the_size_of_a_users_data_is_limited(provider: Provider) -> None:
    emails = [{"value": f"a{index}@x.example"} for index in range(1_000)]
    assert len(json.dumps(emails)) > MAX_DOCUMENT_CHARS

    response = provider.request(
        "POST", "Users", {"schemas": [USER], "userName": "a", "emails": emails}
    )

    assert response.status_code == 400


def test_a_large_body_is_refused(provider: Provider) -> None:
    one_mib = 1024 * 1024  # the limit of a request body
    body = {"schemas": [USER], "userName": "a", "displayName": "x" * one_mib}

    assert provider.request("POST", "Users", body).status_code == 413


def test_a_refusal_for_too_many_requests_names_the_remaining_seconds(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 0)

    refusal = provider.request("GET", "Users")

    assert refusal.status_code == 429
    assert int(refusal["Retry-After"]) > rate_limit.WINDOW_S / 2


def test_each_tenant_has_a_limit_of_concurrent_requests(
    company: Company, provider: Provider, cast: Cast
) -> None:
    other_provider = make_provider(cast.globex)
    with ExitStack() as held_slots:
        for _ in range(4):  # the limit of one tenant
            held_slots.enter_context(REQUEST_SLOTS.acquire(company.tenant_id))
        refusal = provider.request("GET", "Users")
        accepted = other_provider.request("GET", "Users")

    assert (refusal.status_code, refusal["Retry-After"]) == (429, "5")
    assert accepted.status_code == 200
    assert provider.request("GET", "Users").status_code == 200
