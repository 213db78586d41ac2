"""The REST API with service keys: the endpoints that each scope opens, and rejected keys."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.api_keys.scopes import PERMISSIONS_OF, KeyScope
from tenants.models import ApiKey, AuditEntry
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_key,
    make_service_key,
)
from tests.integration.console.conftest import SignIn
from tests.integration.console.test_api_permissions import (
    ENDPOINTS,
    NAMES,
    SHARED_PLACEHOLDER,
    Endpoint,
    call_endpoint,
)

# All endpoints authenticate in the same way, so the default suite calls only the first endpoint of
# each method. The deep suite calls all.
ENDPOINTS_WITH_MARKS = [
    pytest.param(
        endpoint,
        marks=pytest.mark.deep
        if any(before.method == endpoint.method for before in ENDPOINTS[:index])
        else (),
        id=f"{endpoint.method} {endpoint.path}",
    )
    for index, endpoint in enumerate(ENDPOINTS)
]
ProvideKey = Callable[[Company, Iterable[KeyScope]], str]
OFFICE = "192.0.2.0/24"  # the network of client_with_key's default address


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def client_with_key(text: str, *, address: str = "192.0.2.7") -> Client:
    client = Client(headers={"Authorization": f"Bearer {text}"}, REMOTE_ADDR=address)
    client.handler.enforce_csrf_checks = True
    return client


@pytest.fixture(scope="module")
def key_for() -> ProvideKey:
    """Return a function that makes one service key for each company and set of scopes.

    Later calls with the same arguments return the same key.
    """
    keys: dict[tuple[str, frozenset[KeyScope]], str] = {}

    def provide_key(company: Company, scopes: Iterable[KeyScope]) -> str:
        scope_set = frozenset(scopes)
        if (company.slug, scope_set) not in keys:
            keys[company.slug, scope_set] = make_service_key(company, *scope_set).text
        return keys[company.slug, scope_set]

    return provide_key


def status_and_code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def post(client: Client, path: str, body: object) -> Any:
    return client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


def sufficient_scopes(endpoint: Endpoint) -> set[KeyScope]:
    """Return the scopes that open the endpoint; none if keys cannot use it."""
    return {
        scope for scope, permissions in PERMISSIONS_OF.items() if permissions & endpoint.permissions
    }


def additional_scopes(endpoint: Endpoint) -> set[KeyScope]:
    """Return the scopes needed besides a sufficient one: exports need the scope of their data."""
    return {KeyScope.USAGE_READ} if endpoint.path.startswith("exports") else set()


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if sufficient_scopes(endpoint)],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
def test_a_scope_allows_the_endpoints_of_its_permissions(
    cast: Cast, endpoint: Endpoint, key_for: ProvideKey
) -> None:
    for scope in sorted(sufficient_scopes(endpoint)):
        additional = additional_scopes(endpoint)
        # INFERENCE: POST keys creates a key with this scope, and a key grants only its own scopes.
        client = client_with_key(key_for(cast.acme, {scope, *additional, KeyScope.INFERENCE}))

        # A finished export cannot be cancelled (409).
        status = call_endpoint(client, endpoint, cast.acme).status_code
        assert status < 400 or (status == 409 and endpoint.path.endswith("cancel"))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_an_endpoint_refuses_a_key_with_all_other_scopes(
    cast: Cast, endpoint: Endpoint, key_for: ProvideKey
) -> None:
    other_scopes = {*PERMISSIONS_OF, KeyScope.INFERENCE} - sufficient_scopes(endpoint)
    client = client_with_key(key_for(cast.acme, other_scopes))

    assert status_and_code(call_endpoint(client, endpoint, cast.acme)) == (403, "forbidden")


# Only in the deep suite: in the default suite, test_api_permissions.py sends these requests as a
# signed-in user.
@pytest.mark.deep
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_another_tenants_key_gets_none_of_the_data(
    cast: Cast, endpoint: Endpoint, key_for: ProvideKey
) -> None:
    client = client_with_key(key_for(cast.globex, {*PERMISSIONS_OF, KeyScope.INFERENCE}))

    response = call_endpoint(client, endpoint, cast.acme)

    if "{" in endpoint.path.replace(SHARED_PLACEHOLDER, ""):
        # The path names an object of acme. Permissions are checked before it is looked up.
        assert response.status_code == (404 if sufficient_scopes(endpoint) else 403)
    assert cast.acme.tenant_id not in response.content.decode()
    assert f"@{cast.acme.slug}" not in response.content.decode()


@pytest.mark.parametrize("endpoint", ENDPOINTS_WITH_MARKS)
def test_an_invalid_key_is_refused_even_with_a_session(
    cast: Cast, sign_in: SignIn, endpoint: Endpoint
) -> None:
    client = sign_in(cast.acme.administrator)
    client.defaults["HTTP_AUTHORIZATION"] = "Bearer cpk_svc_no"

    assert status_and_code(call_endpoint(client, endpoint, cast.acme)) == (401, "invalid_api_key")


def test_a_key_needs_no_csrf_token_and_creates_no_session(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_WRITE)
    before = Session.objects.count()

    response = post(
        client_with_key(service_key.text),
        "keys",
        {"name": "CI", "kind": "svc", "scopes": ["keys:read"]},
    )

    assert response.status_code == 201
    assert response.cookies == {}
    assert Session.objects.count() == before


def test_a_created_key_has_the_requested_scopes_networks_and_expiry(
    company: Company, sign_in: SignIn
) -> None:
    expires_at = (timezone.now() + timedelta(days=7)).replace(microsecond=0)
    request = {
        "name": "Report",
        "kind": "svc",
        "scopes": ["usage:read", "inference:chat"],
        "networks": ["192.0.2.7", OFFICE],
        "expires_at": expires_at.isoformat(),
    }

    created = post(sign_in(company.administrator), "keys", request).json()["key"]

    assert created["scopes"] == ["inference:chat", "usage:read"]
    assert created["networks"] == ["192.0.2.7/32", OFFICE]
    assert datetime.fromisoformat(created["expires_at"]) == expires_at


@pytest.mark.parametrize("scope", ["policies:write", "inference", "usage:read"])
def test_a_key_cannot_create_a_key_with_more_permissions(company: Company, scope: str) -> None:
    client = client_with_key(make_service_key(company, KeyScope.KEYS_WRITE).text)

    response = post(client, "keys", {"name": "CI", "kind": "svc", "scopes": [scope]})

    assert status_and_code(response) == (403, "forbidden")
    with tenant_scope(company.tenant_id):
        assert ApiKey.objects.count() == 1


def test_a_network_restricted_key_cannot_create_an_unrestricted_one(company: Company) -> None:
    restricted_key = make_service_key(company, KeyScope.KEYS_WRITE, networks=(OFFICE,))
    request: dict[str, object] = {"name": "CI", "kind": "svc", "scopes": ["keys:read"]}

    assert status_and_code(post(client_with_key(restricted_key.text), "keys", request)) == (
        403,
        "forbidden",
    )
    assert (
        post(
            client_with_key(restricted_key.text), "keys", request | {"networks": [OFFICE]}
        ).status_code
        == 201
    )


def test_a_key_cannot_rotate_itself(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_WRITE)

    response = post(
        client_with_key(service_key.text), f"keys/{service_key.key.lookup_id}/rotate", {}
    )

    assert status_and_code(response) == (403, "forbidden")


@pytest.mark.parametrize("address", ["198.51.100.7", "2001:db8::1"])
def test_a_restricted_key_from_another_network_gets_the_error_of_an_invalid_key(
    company: Company, address: str
) -> None:
    restricted_key = make_service_key(company, KeyScope.USAGE_READ, networks=(OFFICE,))
    invalid_key_response = client_with_key("cpk_svc_wrong", address=address).get("/api/v1/usage")

    refusal = client_with_key(restricted_key.text, address=address).get("/api/v1/usage")

    assert (refusal.status_code, refusal.content) == (
        invalid_key_response.status_code,
        invalid_key_response.content,
    )
    assert (
        client_with_key(restricted_key.text, address="::ffff:192.0.2.9")
        .get("/api/v1/usage")
        .status_code
        == 200
    )


def test_a_forwarded_address_from_an_untrusted_proxy_is_ignored(company: Company) -> None:
    restricted_key = make_service_key(company, KeyScope.USAGE_READ, networks=(OFFICE,))
    client = client_with_key(restricted_key.text, address="198.51.100.7")

    response = client.get("/api/v1/usage", headers={"X-Forwarded-For": "192.0.2.7"})

    assert status_and_code(response) == (401, "invalid_api_key")


def test_a_developer_key_is_refused(company: Company) -> None:
    response = client_with_key(make_key(company, company.developer).text).get("/api/v1/usage")

    assert status_and_code(response) == (401, "wrong_api_key_kind")


def test_a_rotated_key_works_only_with_its_new_secret(company: Company, sign_in: SignIn) -> None:
    rotated_key = make_service_key(company, KeyScope.USAGE_READ)

    path = f"keys/{rotated_key.key.lookup_id}/rotate"
    rotated = post(sign_in(company.administrator), path, {"overlap_hours": 0}).json()

    assert status_and_code(client_with_key(rotated_key.text).get("/api/v1/usage")) == (
        401,
        "expired_api_key",
    )
    assert client_with_key(rotated["text"]).get("/api/v1/usage").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": ["payroll:write"]}, "scopes.0"),
        ({"scopes": []}, "scopes"),
        ({"networks": ["x"]}, "networks"),
        ({"networks": ["192.0.2.7/24"]}, "networks"),  # with host bits
        ({"networks": ["10.0.0.0/8"] * 21}, "networks"),  # too many
        ({"networks": [7]}, "networks.0"),
    ],
)
def test_an_invalid_key_request_is_rejected_with_the_fields_name(
    company: Company, body: dict[str, object], field: str
) -> None:
    client = client_with_key(make_service_key(company, *PERMISSIONS_OF).text)

    response = post(client, "keys", {"name": "CI", "kind": "svc"} | body)

    assert (response.status_code, response.json()["field"]) == (422, field)


@pytest.mark.parametrize("hours", [-1, 169, "x", 1.5])
def test_an_invalid_overlap_is_rejected(company: Company, hours: object) -> None:
    client = client_with_key(make_service_key(company, *PERMISSIONS_OF).text)
    other_key = make_service_key(company, KeyScope.USAGE_READ)

    response = post(client, f"keys/{other_key.key.lookup_id}/rotate", {"overlap_hours": hours})

    assert (response.status_code, response.json()["field"]) == (422, "overlap_hours")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 10_000, b"x" * (1024 * 1024 + 1)])
def test_an_unreadable_or_oversized_body_is_rejected(company: Company, body: bytes) -> None:
    client = client_with_key(make_service_key(company, *PERMISSIONS_OF).text)

    response = client.post("/api/v1/keys", body, content_type="application/json")

    assert response.status_code in (400, 413)
    assert response["Content-Type"] == "application/problem+json"


def test_a_repeated_request_with_an_idempotency_key_creates_one_key(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_WRITE)
    request = {"name": "CI", "kind": "svc", "scopes": ["keys:read"]}
    client = client_with_key(service_key.text)

    answers = [
        client.post(
            "/api/v1/keys",
            json.dumps(request),
            content_type="application/json",
            headers={"Idempotency-Key": "once"},
        )
        for _ in range(2)
    ]

    assert answers[0].content == answers[1].content
    with tenant_scope(company.tenant_id):
        assert ApiKey.objects.count() == 2  # the key that sent the requests, and the new key


def test_idle_keys_are_listed(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_READ)
    idle = make_key(company, company.developer)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=idle.key.lookup_id).update(
            created_at=timezone.now() - timedelta(days=31)
        )

    page = client_with_key(service_key.text).get("/api/v1/keys/idle?days=30").json()

    assert [row["lookup_id"] for row in page["items"]] == [idle.key.lookup_id]


def test_a_policy_change_by_a_key_is_audited_with_its_lookup_id(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.POLICIES_WRITE)
    client = client_with_key(service_key.text)
    policy = client.get("/api/v1/policy").json()["policy"]

    response = client.put(
        "/api/v1/policy",
        json.dumps({"policy": policy, "reason": "nightly"}),
        content_type="application/json",
    )

    assert response.status_code == 200
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="policy.changed")
    assert entry.actor_key == service_key.key.lookup_id
