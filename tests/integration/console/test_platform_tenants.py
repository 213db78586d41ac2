"""The platform API: tenants over REST for operators' scripts, with operator keys only.

Also tests `manage.py operator_key`, the command that creates these keys.
"""

import json
import re
import secrets
from datetime import datetime, timedelta
from io import StringIO
from typing import Any, Final

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from caret.contracts.api_key import parse_key
from caret.contracts.snapshot import SNAPSHOTS, TenantStatus, decode_snapshot
from caret.foundation.ids import LookupId, TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.api import rate_limit
from tenants.base.operator_roles import OperatorScope
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.keys import create_operator_key, revoke_operator_key
from tenants.identity.api_keys.scopes import PERMISSIONS_OF
from tenants.identity.invitations.operations import find_open_invitation
from tenants.models import AuditEntry, Tenant
from tenants.security.authorization.directory import find_tenant, list_members
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company, make_service_key
from tests.integration.console.conftest import SignIn

# Method, path and a valid body. Paths are below /api/v1/platform/tenants, or below /api/v1/platform
# if they begin with "~". {slug} is an existing tenant, {member} the e-mail address of its member.
# No gateway responds, so no pool can be assigned and no model published.
ENDPOINTS: Final[list[tuple[str, str, dict[str, Any] | None]]] = [
    ("GET", "", None),
    ("POST", "", {"slug": "new-{slug}", "name": "New", "owner_email": "o@new.example"}),
    ("GET", "/{slug}", None),
    ("PATCH", "/{slug}", {"name": "Renamed", "reason": "test"}),
    ("POST", "/{slug}/owner-invitation", {"owner_email": "o@new.example"}),
    ("POST", "/{slug}/owners", {"email": "{member}", "reason": "test"}),
    ("GET", "/{slug}/closing", None),
    ("GET", "/{slug}/pools", None),
    ("PUT", "/{slug}/pools", {"pool": "demo-fast", "reason": "test"}),
    ("DELETE", "/{slug}/pools?tier=fast&reason=test", None),
    ("GET", "~/pools", None),
    ("GET", "~/models", None),
    ("PUT", "~/models", {"title": "Demo", "pools": ["demo-fast"]}),
    ("DELETE", "~/models?tier=fast&name=demo", None),
]
NAMES: Final = [f"{method} {path or '/'}" for method, path, _ in ENDPOINTS]
WITH_BODY: Final = [endpoint for endpoint in ENDPOINTS if endpoint[2] is not None]
every_endpoint = pytest.mark.parametrize(("method", "path", "body"), ENDPOINTS, ids=NAMES)


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", {Role.DEVELOPER: "ada"})


@pytest.fixture
def slug() -> str:
    return f"initech-{secrets.token_hex(4)}"


def make_operator_key(*scopes: OperatorScope) -> str:
    """Return the text of a new operator key. Without `scopes`, the key has all scopes."""
    return create_operator_key(
        name="Provisioning", scopes=scopes or OperatorScope, days=30, now=timezone.now()
    ).text


def lookup_id_of(key: str) -> LookupId:
    parsed_key = parse_key(key)
    assert parsed_key is not None
    return parsed_key.lookup_id


def send_request(key: str | None, method: str, path: str, body: object = None) -> Any:
    """Send the body: text as it is, another value as JSON. ENDPOINTS explains the path."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    text = body if isinstance(body, str) else json.dumps(body)
    client = Client(headers=headers)
    client.handler.enforce_csrf_checks = True
    path_below_platform = path[1:] if path.startswith("~") else f"/tenants{path}"
    return client.generic(
        method, f"/api/v1/platform{path_below_platform}", text, content_type="application/json"
    )


def call_endpoint(key: str | None, company: Company, method: str, path: str, body: Any) -> Any:
    filled_body = json.dumps(body).replace("{slug}", company.slug)
    filled_body = filled_body.replace("{member}", company.developer.email)
    return send_request(key, method, path.replace("{slug}", company.slug), filled_body)


def status_and_code(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


def status_of(company: Company) -> str:
    return Tenant.objects.get(id=company.tenant_id).status


@every_endpoint
def test_a_request_without_a_key_is_refused(
    company: Company, method: str, path: str, body: Any
) -> None:
    response = call_endpoint(None, company, method, path, body)

    assert status_and_code(response) == (401, "missing_api_key")


@every_endpoint
def test_a_tenants_key_is_refused(company: Company, method: str, path: str, body: Any) -> None:
    key = make_service_key(company, *PERMISSIONS_OF).text

    response = call_endpoint(key, company, method, path, body)

    assert status_and_code(response) == (401, "wrong_api_key_kind")


@every_endpoint
def test_a_revoked_key_is_refused(company: Company, method: str, path: str, body: Any) -> None:
    key = make_operator_key()
    revoke_operator_key(lookup_id=lookup_id_of(key), now=timezone.now())

    response = call_endpoint(key, company, method, path, body)

    assert status_and_code(response) == (401, "revoked_api_key")


@every_endpoint
def test_a_scope_allows_only_its_own_endpoints(
    company: Company, method: str, path: str, body: Any
) -> None:
    sufficient_scope, other_scope = OperatorScope.READ_TENANTS, OperatorScope.WRITE_TENANTS
    if method != "GET":
        sufficient_scope, other_scope = other_scope, sufficient_scope

    allowed = call_endpoint(make_operator_key(sufficient_scope), company, method, path, body)
    refusal = call_endpoint(make_operator_key(other_scope), company, method, path, body)

    # 404 and 409: the scope allows the request, but its object does not exist or has no gateway.
    assert allowed.status_code in (200, 201, 204, 404, 409)
    assert status_and_code(refusal) == (403, "forbidden")


@pytest.mark.parametrize(("method", "path", "body"), WITH_BODY)
def test_a_body_that_is_huge_not_json_or_has_an_unknown_field_is_refused(
    company: Company, method: str, path: str, body: Any
) -> None:
    key, target = make_operator_key(), path.replace("{slug}", company.slug)

    huge = send_request(key, method, target, json.dumps(body | {"name": "x" * 2_000_000}))
    broken = send_request(key, method, target, '{"slug": ')
    unknown_field = send_request(key, method, target, json.dumps(body | {"surprise": 1}))

    assert status_and_code(huge) == (413, "too_large")
    assert status_and_code(broken) == (400, "invalid_json")
    assert status_and_code(unknown_field) == (422, "validation_failed")


def test_a_signed_in_owner_of_a_tenant_is_not_an_operator(sign_in: SignIn) -> None:
    acme = make_company("acme", ACME_PEOPLE)

    response = sign_in(acme.people[Role.OWNER]).get("/api/v1/platform/tenants")

    assert status_and_code(response) == (401, "missing_api_key")


def test_an_expired_and_a_malformed_key_are_refused() -> None:
    long_ago = timezone.now() - timedelta(days=31)
    expired = create_operator_key(name="Old", scopes=OperatorScope, days=30, now=long_ago).text

    malformed = make_operator_key()[:-1] + "!"

    assert status_and_code(send_request(expired, "GET", "")) == (401, "expired_api_key")
    assert status_and_code(send_request(malformed, "GET", "")) == (401, "invalid_api_key")


def test_an_operator_key_is_refused_by_the_tenants_api() -> None:
    client = Client(headers={"Authorization": f"Bearer {make_operator_key()}"})

    assert status_and_code(client.get("/api/v1/keys")) == (401, "invalid_api_key")


def test_a_script_creates_a_tenant(slug: str) -> None:
    key = make_operator_key()
    body = {"slug": slug, "name": "Initech", "owner_email": f"olga@{slug}.example"}

    response = send_request(key, "POST", "", body)

    assert response.status_code == 201
    invitation = response.json()["owner_invitation"]
    token = invitation["url"].rpartition("/")[2]
    assert find_open_invitation(text=token, now=timezone.now()).email == f"olga@{slug}.example"
    assert response.json()["tenant"]["status"] == "active"
    assert send_request(key, "GET", f"/{slug}").json() == response.json()["tenant"]
    tenants = send_request(key, "GET", f"?search={slug}").json()["items"]
    assert tenants == [response.json()["tenant"]]
    entry = first_audit_entry(slug)
    assert (entry.action, entry.actor_kind) == ("tenant.created", "operator")
    assert entry.actor_key == f"operator:key:{lookup_id_of(key)}"
    assert status_and_code(send_request(key, "POST", "", body)) == (409, "conflict")


def first_audit_entry(slug: str) -> AuditEntry:
    tenant_id = find_tenant(slug=slug)
    assert tenant_id is not None
    with tenant_scope(TenantId(tenant_id)):
        return AuditEntry.objects.order_by("sequence")[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slug", "\u0430cme"),  # with a Cyrillic letter
        ("slug", "platform"),
        ("slug", "x" * 64),
        ("slug", "a\0b"),
        ("name", ""),
        ("owner_email", "nobody"),
        ("plan", "no-such-plan"),
        ("region", "EU North"),
    ],
)
def test_an_invalid_field_is_named(slug: str, field: str, value: str) -> None:
    body = {"slug": slug, "name": "Initech", "owner_email": "olga@initech.example"}

    response = send_request(make_operator_key(), "POST", "", body | {field: value})

    assert status_and_code(response) == (422, "validation_failed")
    assert response.json()["field"] == field
    assert find_tenant(slug=slug) is None


def test_a_script_suspends_and_resumes_a_tenant(company: Company) -> None:
    key, path = make_operator_key(), f"/{company.slug}"

    suspended = send_request(key, "PATCH", path, {"status": "suspended", "reason": "unpaid"})
    second_response = send_request(key, "PATCH", path, {"status": "suspended", "reason": "unpaid"})
    data = connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    resumed = send_request(
        key, "PATCH", path, {"status": "active", "name": "Umbrella AG", "reason": "paid"}
    )

    assert suspended.json()["status"] == "suspended"
    assert second_response.status_code == 200
    assert isinstance(data, bytes)
    assert decode_snapshot(data).status is TenantStatus.SUSPENDED
    assert (resumed.json()["status"], resumed.json()["name"]) == ("active", "Umbrella AG")
    with tenant_scope(company.tenant_id):
        changes = AuditEntry.objects.exclude(reason="").order_by("sequence")
        assert [(change.action, change.reason) for change in changes if change.actor_key] == [
            ("tenant.status_changed", "unpaid"),
            ("tenant.renamed", "paid"),
            ("tenant.status_changed", "paid"),
        ]


def test_a_script_closes_a_tenant(company: Company) -> None:
    key = make_operator_key()
    path = f"/{company.slug}"
    closing = {"status": "closing", "grace_days": 14, "reason": "contract ended"}

    changed = send_request(key, "PATCH", path, closing).json()
    state = send_request(key, "GET", f"{path}/closing").json()
    cancelled = send_request(key, "PATCH", path, {"status": "active", "reason": "mistake"}).json()
    answers = [
        send_request(key, "PATCH", path, {"status": status, "reason": "contract ended"})
        for status in ("closing", "closed", "active")
    ]

    assert changed["closes_at"] == state["closes_at"]
    assert datetime.fromisoformat(changed["closes_at"]) - timezone.now() > timedelta(days=13)
    assert state["final_export"]["state"] == "queued"
    assert (state["is_erasing"], state["certificate"]) == (False, None)
    assert (cancelled["status"], cancelled["closes_at"]) == ("active", None)
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert status_of(company) == TenantStatus.CLOSED


def test_a_script_changes_the_trial_and_makes_a_member_an_owner(company: Company) -> None:
    key, path = make_operator_key(), f"/{company.slug}"
    ada, day = company.developer, (timezone.now() + timedelta(days=9)).date().isoformat()

    changed = send_request(key, "PATCH", path, {"trial_ends_on": day, "reason": "longer"}).json()
    unchanged = send_request(
        key, "PATCH", path, {"name": "Umbrella AG", "reason": "renamed"}
    ).json()
    without_trial = send_request(
        key, "PATCH", path, {"trial_ends_on": None, "reason": "paid"}
    ).json()
    past = send_request(key, "PATCH", path, {"trial_ends_on": "2026-01-01", "reason": "test"})
    appointed = send_request(
        key, "POST", f"{path}/owners", {"email": ada.email, "reason": "Olga left"}
    )
    unknown_member = send_request(
        key, "POST", f"{path}/owners", {"email": "x@y.example", "reason": "test"}
    )

    assert (changed["trial_ends_on"], unchanged["trial_ends_on"]) == (day, day)
    assert without_trial["trial_ends_on"] is None
    assert (status_and_code(past), past.json()["field"]) == (
        (422, "validation_failed"),
        "trial_ends_on",
    )
    assert (appointed.status_code, status_and_code(unknown_member)) == (204, (404, "not_found"))
    assert [row.role for row in list_members(tenant_id=company.tenant_id)] == [Role.OWNER]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"status": "suspended", "reason": " "}, 422),
        ({"status": "closed", "reason": "test"}, 409),
        ({"status": "gone", "reason": "test"}, 422),
        ({"status": "closing", "grace_days": 0, "reason": "test"}, 422),
        ({"status": "suspended"}, 422),
        ({"status": "suspended", "name": "\n", "reason": "test"}, 422),
    ],
)
def test_a_change_that_is_refused_changes_nothing(
    company: Company, body: dict[str, Any], status: int
) -> None:
    response = send_request(make_operator_key(), "PATCH", f"/{company.slug}", body)

    assert response.status_code == status
    assert status_of(company) == TenantStatus.ACTIVE


def test_an_unknown_tenant_is_not_found() -> None:
    key = make_operator_key()

    for path in ("/nobody-here", "/%00", "/%D0%B0cme"):  # the last with a Cyrillic letter
        assert status_and_code(send_request(key, "GET", path)) == (404, "not_found")


def test_the_requests_of_a_key_are_rate_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 1)
    key = make_operator_key()
    send_request(key, "GET", "")

    response = send_request(key, "GET", "")

    assert status_and_code(response) == (429, "too_many_requests")
    assert int(response["Retry-After"]) > 0
    assert send_request(make_operator_key(), "GET", "").status_code == 200


def run(*arguments: str) -> str:
    output = StringIO()
    call_command("operator_key", *arguments, stdout=output)
    return output.getvalue()


def test_the_command_creates_lists_and_revokes_a_key() -> None:
    created = run("create", "Terraform", "--scope", "tenants.read", "--days", "7")
    match = re.search(r"cpk_ops_\w+", created)
    assert match is not None
    key = match[0]
    assert send_request(key, "GET", "").status_code == 200

    run("revoke", lookup_id_of(key))

    assert status_and_code(send_request(key, "GET", "")) == (401, "revoked_api_key")
    key_line = next(line for line in run("list").splitlines() if line.startswith(lookup_id_of(key)))
    assert "revoked" in key_line
    assert "tenants.read" in key_line
    assert key not in run("list")


@pytest.mark.parametrize(
    "arguments",
    [("create", ""), ("create", "x", "--days", "0"), ("create", "x", "--days", "9999")],
)
def test_the_command_refuses_an_empty_name_and_an_invalid_lifetime(
    arguments: tuple[str, ...],
) -> None:
    with pytest.raises(CommandError, match="Enter 1 to"):
        run(*arguments)


def test_the_command_reports_a_key_that_does_not_exist() -> None:
    with pytest.raises(CommandError, match="does not exist"):
        run("revoke", "nobody00")
