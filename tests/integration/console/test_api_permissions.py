"""The response of each endpoint of the OpenAPI document to each role.

The whole table is compared with the permissions that the document names. Over HTTP, the default
suite calls each endpoint as the weakest role that it allows and as the strongest that it rejects.
The deep suite calls it as every role.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import pytest
from django.test import Client

from console.api.api import api
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tests.fakes.billing import ensure_customer, ensure_invoice, make_users_budget
from tests.fakes.exports import make_export
from tests.fakes.retention import make_certificate, make_hold
from tests.fakes.saml_provider import SamlProvider
from tests.fakes.siem_servers import make_sink
from tests.fixtures.companies import Cast, Company, make_completion, make_key
from tests.fixtures.users import (
    get_shared_scim_token_id,
    make_colleague,
    make_domain,
    make_invitation,
    make_scim_group,
    make_team,
)
from tests.integration.console.conftest import SignIn
from tests.role_tables import only_for, role_cases


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str  # below /api/v1/
    permissions: frozenset[Permission]  # any one of them is sufficient


def read_endpoints() -> list[Endpoint]:
    return [
        Endpoint(
            method=method.upper(),
            path=path.removeprefix("/api/v1/"),
            permissions=frozenset(Permission(name) for name in operation["x-permissions"]),
        )
        for path, operations in api.get_openapi_schema()["paths"].items()
        for method, operation in operations.items()
        # Other endpoints are for secret scanners and operators, who are not members. They are
        # tested in test_leak_reports.py and test_platform_tenants.py.
        if "x-open-to" not in operation
    ]


ENDPOINTS: Final = read_endpoints()
CREATED, ACCEPTED, NO_CONTENT, FORBIDDEN, NOT_FOUND, CONFLICT = (
    HTTPStatus.CREATED,
    HTTPStatus.ACCEPTED,
    HTTPStatus.NO_CONTENT,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
)


# The roles that each endpoint allows, listed independently of the code on purpose.
MANAGERS = (Role.OWNER, Role.ADMINISTRATOR)
PAYERS = (*MANAGERS, Role.BILLING)
READERS = (*MANAGERS, Role.AUDITOR, Role.DEVELOPER)
EXPECTED: dict[tuple[str, str], dict[Role, int]] = {
    ("GET", "audit"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "audit/sinks"): only_for(*MANAGERS, Role.AUDITOR),
    ("POST", "audit/sinks"): only_for(*MANAGERS, status=CREATED),
    ("POST", "audit/sinks/{sink_id}/test"): only_for(*MANAGERS),
    ("POST", "audit/sinks/{sink_id}/replay"): only_for(*MANAGERS),
    ("POST", "audit/sinks/{sink_id}/retry"): only_for(*MANAGERS),
    ("DELETE", "audit/sinks/{sink_id}"): only_for(*MANAGERS, status=NO_CONTENT),
    ("GET", "keys"): only_for(*READERS),
    ("POST", "keys"): only_for(*MANAGERS, status=CREATED),
    ("GET", "keys/idle"): only_for(*READERS),
    ("GET", "keys/unowned"): only_for(*READERS),
    ("POST", "keys/{lookup_id}/revoke"): only_for(*MANAGERS),
    ("POST", "keys/{lookup_id}/rotate"): only_for(*MANAGERS),
    ("GET", "policy"): only_for(*READERS),
    ("PUT", "policy"): only_for(*MANAGERS),
    ("GET", "policy/models"): only_for(*READERS),
    ("GET", "policy/versions"): only_for(*READERS),
    ("POST", "policy/preview"): only_for(*MANAGERS),
    ("GET", "policy/explain"): only_for(*READERS),
    ("GET", "policy/denials"): only_for(*Role),
    ("GET", "policy/overrides"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "policy/overrides/{kind}/{subject_id}"): only_for(*MANAGERS, Role.AUDITOR),
    ("PUT", "policy/overrides/{kind}/{subject_id}"): only_for(*MANAGERS),
    ("POST", "policy/overrides/{kind}/{subject_id}/preview"): only_for(*MANAGERS),
    ("GET", "budgets"): only_for(*PAYERS, Role.AUDITOR),
    ("POST", "budgets"): only_for(*PAYERS, status=CREATED),
    ("GET", "budgets/{budget_id}"): only_for(*PAYERS, Role.AUDITOR),
    ("PUT", "budgets/{budget_id}"): only_for(*PAYERS),
    ("DELETE", "budgets/{budget_id}"): only_for(*PAYERS, status=NO_CONTENT),
    ("GET", "budgets/{budget_id}/webhook-secret"): only_for(*PAYERS),
    ("GET", "plans"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "domains"): only_for(*MANAGERS, Role.AUDITOR),
    ("POST", "domains"): only_for(Role.OWNER, status=CREATED),
    ("POST", "domains/{domain_id}/verify"): only_for(Role.OWNER, status=CONFLICT),  # no DNS record
    ("DELETE", "domains/{domain_id}"): only_for(Role.OWNER, status=NO_CONTENT),
    ("GET", "scim/tokens"): only_for(*MANAGERS, Role.AUDITOR),
    ("POST", "scim/tokens"): only_for(Role.OWNER, status=CREATED),
    ("POST", "scim/tokens/{token_id}/revoke"): only_for(Role.OWNER),
    ("GET", "sign-in-settings"): only_for(*MANAGERS, Role.AUDITOR),
    ("PUT", "sign-in-settings/second-factor"): only_for(Role.OWNER),
    ("PUT", "sign-in-settings/provider"): only_for(Role.OWNER),
    ("PUT", "sign-in-settings/provider/saml"): only_for(Role.OWNER),
    ("DELETE", "sign-in-settings/provider"): only_for(Role.OWNER),
    ("GET", "scim/groups"): only_for(*MANAGERS, Role.AUDITOR),
    ("PUT", "scim/groups/{group_id}/role"): only_for(Role.OWNER),
    ("GET", "exports"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "exports/definitions"): only_for(*PAYERS, Role.AUDITOR),
    ("POST", "exports"): only_for(*PAYERS, Role.AUDITOR, status=ACCEPTED),
    ("GET", "exports/{export_id}"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "exports/{export_id}/proof"): only_for(*PAYERS, Role.AUDITOR),
    ("POST", "exports/{export_id}/link"): only_for(*PAYERS, Role.AUDITOR, status=CREATED),
    # A conflict, because the export is finished.
    ("POST", "exports/{export_id}/cancel"): only_for(*PAYERS, Role.AUDITOR, status=CONFLICT),
    ("GET", "invoices"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "invoices/{number}"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "invoices/{number}/pdf"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "ledger"): only_for(*PAYERS, Role.AUDITOR),
    ("GET", "invitations"): only_for(*MANAGERS, Role.AUDITOR),
    ("POST", "invitations"): only_for(*MANAGERS, status=CREATED),
    ("POST", "invitations/{invitation_id}/revoke"): only_for(*MANAGERS),
    ("GET", "members"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "members/{user_id}"): only_for(*MANAGERS, Role.AUDITOR),
    ("PATCH", "members/{user_id}"): only_for(*MANAGERS),
    ("POST", "members/{user_id}/remove"): only_for(*MANAGERS),
    ("GET", "reports/usage"): only_for(*Role),
    ("GET", "reports/quality"): only_for(*READERS),
    ("PUT", "reports/settings"): only_for(*MANAGERS),
    ("GET", "retention"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "retention/runs"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "retention/holds"): only_for(*MANAGERS, Role.AUDITOR),
    ("POST", "retention/holds"): only_for(*MANAGERS, status=CREATED),
    ("POST", "retention/holds/{hold_id}/release"): only_for(*MANAGERS, status=NO_CONTENT),
    ("GET", "retention/certificates"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "retention/certificates/{certificate_id}"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "retention/{data_class}/preview"): only_for(*MANAGERS, Role.AUDITOR),
    ("PUT", "retention/{data_class}"): only_for(*MANAGERS),
    ("GET", "teams"): only_for(*PAYERS, Role.AUDITOR),
    ("POST", "teams"): only_for(*MANAGERS, status=CREATED),
    ("GET", "teams/{team_id}"): only_for(*PAYERS, Role.AUDITOR),
    ("PATCH", "teams/{team_id}"): only_for(*MANAGERS),
    ("DELETE", "teams/{team_id}"): only_for(*MANAGERS, status=NO_CONTENT),
    ("PUT", "teams/{team_id}/members/{user_id}"): only_for(*MANAGERS),
    ("DELETE", "teams/{team_id}/members/{user_id}"): only_for(*MANAGERS),
    ("GET", "tenant"): only_for(*Role),
    ("GET", "consent"): only_for(*MANAGERS, Role.DEVELOPER),
    ("PUT", "consent"): only_for(*MANAGERS, Role.DEVELOPER),
    ("DELETE", "consent"): only_for(*MANAGERS, Role.DEVELOPER),
    ("GET", "consent/receipts"): only_for(*READERS),
    ("POST", "data-subjects/me/bundle"): only_for(*Role),
    ("POST", "data-subjects/{user_id}/bundle"): only_for(*MANAGERS),
    ("POST", "data-subjects/{user_id}/erasure"): only_for(*MANAGERS, status=ACCEPTED),
    ("GET", "data-subjects/erasures"): only_for(*MANAGERS, Role.AUDITOR),
    ("GET", "usage"): only_for(*Role),
    ("GET", "usage/requests/{request_id}"): only_for(*Role),
}
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "budgets/{budget_id}"): {"limit_micros": 2_000_000, "version": 1},
    ("POST", "invitations"): {"email": f"guest@{secrets.token_hex(4)}.example"},
    ("PATCH", "members/{user_id}"): {"role": "auditor"},
    ("POST", "scim/tokens"): {"name": "Entra ID"},
    ("PUT", "sign-in-settings/second-factor"): {"is_required": False},
    ("PUT", "sign-in-settings/provider"): {
        "issuer": "https://login.example.com",
        "client_id": "caret",
        "client_secret": "a secret",
    },
    ("PUT", "sign-in-settings/provider/saml"): {"metadata": SamlProvider().metadata()},
    ("PUT", "scim/groups/{group_id}/role"): {"role": "auditor"},
    ("POST", "exports"): {
        "definition": "usage_days",
        "since": "2026-10-01T00:00:00Z",
        "until": "2026-11-01T00:00:00Z",
    },
    ("POST", "keys"): {"name": "CI", "kind": "svc"},
    ("POST", "audit/sinks/{sink_id}/replay"): {"from_sequence": 1},
    ("POST", "keys/{lookup_id}/revoke"): {"reason": "lost"},
    ("PUT", "consent"): {"content_capture": False},
    ("POST", "data-subjects/{user_id}/bundle"): {"reason": "letter"},
    ("POST", "data-subjects/{user_id}/erasure"): {"reason": "letter"},
    ("POST", "retention/holds"): {"name": "matter", "reason": "letter"},
    ("POST", "retention/holds/{hold_id}/release"): {"reason": "settled"},
    ("PUT", "retention/{data_class}"): {"days": 120, "reason": "annex"},
    ("PUT", "reports/settings"): {"min_users": 5, "reason": "test"},
    ("POST", "keys/{lookup_id}/rotate"): {"overlap_hours": 1},
    ("PUT", "policy"): {"policy": serialize_policy(DEFAULT_POLICY), "reason": "test"},
    ("POST", "policy/preview"): {"policy": serialize_policy(DEFAULT_POLICY)},
    ("PUT", "policy/overrides/{kind}/{subject_id}"): {"override": {}, "reason": "test"},
    ("POST", "policy/overrides/{kind}/{subject_id}/preview"): {"override": {}},
}
# By placeholder in an endpoint's path: a function that returns a value of the company for a call.
PATH_VALUES: dict[str, Callable[[Company], str]] = {
    "{lookup_id}": lambda company: make_key(company, make_colleague(company)).key.lookup_id,
    "{request_id}": lambda company: make_completion(company, company.developer),
    "{kind}": lambda company: "team",
    "{subject_id}": lambda company: make_team(company),
    "{user_id}": lambda company: make_colleague(company).user_id,
    "{number}": lambda company: str(ensure_invoice(company)),
    "{budget_id}": lambda company: str(make_users_budget(company).id),
    "{team_id}": lambda company: make_team(company),
    "{domain_id}": lambda company: make_domain(company),
    "{token_id}": lambda company: get_shared_scim_token_id(company),
    "{group_id}": lambda company: make_scim_group(company),
    "{invitation_id}": lambda company: make_invitation(company),
    "{sink_id}": lambda company: make_sink(company),
    "{hold_id}": lambda company: make_hold(company),
    "{certificate_id}": lambda company: make_certificate(company),
    "{export_id}": lambda company: make_export(company),
    "{data_class}": lambda _: "usage_records",
}
SHARED_PLACEHOLDER: Final = "{data_class}"  # its values exist in each tenant
QUERIES = {
    ("DELETE", "budgets/{budget_id}"): "?version=1",
    ("GET", "retention/{data_class}/preview"): "?days=120",
}
NAMES = [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS]


def call_endpoint(client: Client, endpoint: Endpoint, company: Company) -> Any:
    """Call the endpoint with new objects of this company in its path."""
    path = endpoint.path
    for placeholder, make in PATH_VALUES.items():
        if placeholder in path:
            path = path.replace(placeholder, make(company))
    address = f"/api/v1/{path}{QUERIES.get((endpoint.method, endpoint.path), '')}"
    body = BODIES.get((endpoint.method, endpoint.path))
    if (endpoint.method, endpoint.path) == ("POST", "domains"):
        body = {"name": f"{secrets.token_hex(4)}.example"}
    if (endpoint.method, endpoint.path) in (("POST", "teams"), ("PATCH", "teams/{team_id}")):
        body = {"name": secrets.token_hex(4)}  # a team's name must be unique
    if (endpoint.method, endpoint.path) == ("POST", "budgets"):
        ensure_customer(company)
        user_id = make_colleague(company).user_id
        body = {"scope": "user", "user_id": user_id, "limit_micros": 1_000_000}
    if (endpoint.method, endpoint.path) == ("POST", "audit/sinks"):
        body = {"name": secrets.token_hex(4), "address": "https://siem.invalid/hook"}
    return client.generic(
        endpoint.method, address, json.dumps(body) if body else "", content_type="application/json"
    )


def test_every_endpoint_has_an_expected_status_for_every_role() -> None:
    assert set(EXPECTED) == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    assert all(set(expected) == set(Role) for expected in EXPECTED.values())


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_an_endpoints_permissions_match_the_expected_roles(endpoint: Endpoint) -> None:
    for role, status in EXPECTED[endpoint.method, endpoint.path].items():
        is_allowed = any(
            role_has_permission(role, permission) for permission in endpoint.permissions
        )
        assert is_allowed == (status != FORBIDDEN)


@pytest.mark.parametrize(
    ("endpoint", "role"),
    role_cases(
        {
            name: (endpoint, EXPECTED.get((endpoint.method, endpoint.path), only_for()))
            for name, endpoint in zip(NAMES, ENDPOINTS, strict=True)
        }
    ),
)
def test_a_member_gets_what_their_role_allows(
    cast: Cast, sign_in: SignIn, endpoint: Endpoint, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    response = call_endpoint(client, endpoint, cast.acme)

    if (endpoint.path, role) == ("keys/{lookup_id}/revoke", Role.DEVELOPER):
        assert response.status_code == NOT_FOUND  # developers see only keys of their own
        return
    assert response.status_code == EXPECTED[endpoint.method, endpoint.path][role]
    if response.status_code == FORBIDDEN:
        assert response.json()["code"] == "forbidden"
    response.getvalue()  # reading a file closes it


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_an_anonymous_request_is_unauthenticated(cast: Cast, endpoint: Endpoint) -> None:
    response = call_endpoint(Client(), endpoint, cast.acme)

    assert response.status_code == HTTPStatus.UNAUTHORIZED
    assert response.json()["code"] == "unauthenticated"
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_another_tenant_gets_none_of_the_data(
    cast: Cast, sign_in: SignIn, endpoint: Endpoint
) -> None:
    client = sign_in(cast.globex.administrator)

    response = call_endpoint(client, endpoint, cast.acme)

    if "{" in endpoint.path.replace(SHARED_PLACEHOLDER, ""):
        # The path names an object of acme. Permissions are checked before it is looked up.
        is_forbidden = EXPECTED[endpoint.method, endpoint.path][Role.ADMINISTRATOR] == FORBIDDEN
        assert response.status_code == (FORBIDDEN if is_forbidden else NOT_FOUND)
    text = response.getvalue().decode(errors="replace")  # some responses are files
    assert cast.acme.tenant_id not in text
    assert f"@{cast.acme.slug}" not in text


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if endpoint.method != "GET"],
    ids=[name for name in NAMES if not name.startswith("GET")],
)
def test_a_change_without_a_csrf_token_is_refused(
    cast: Cast, sign_in: SignIn, endpoint: Endpoint
) -> None:
    client = sign_in(cast.acme.administrator)
    client.handler.enforce_csrf_checks = True

    response = call_endpoint(client, endpoint, cast.acme)

    assert response.status_code == FORBIDDEN
    assert response.json()["code"] == "csrf_failed"


def test_every_permission_but_four_opens_an_endpoint() -> None:
    used_permissions = frozenset().union(*(endpoint.permissions for endpoint in ENDPOINTS))

    assert set(Permission) - used_permissions == {
        Permission.WRITE_OWNERS,  # also required if a member is or becomes an owner
        Permission.MANAGE_OWN_KEYS,  # enough for keys of one's own
        Permission.USE_PLAYGROUND,  # for a page, which keys cannot use
        Permission.WRITE_BILLING,  # for a page
    }
