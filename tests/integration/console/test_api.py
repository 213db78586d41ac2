"""The REST API's responses: created objects, lists, rejections and error documents."""

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from caret.contracts.api_key import KeyKind, parse_key
from console.api import rate_limit
from console.api.problems import ProblemRaised
from console.api.rate_limit import count_request
from tenants.base.permissions import Role
from tenants.identity.api_keys.operations import create_key
from tenants.identity.api_keys.queries import is_key_active
from tenants.identity.api_keys.validation import KeyRequest
from tenants.models import User
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tests.fakes.console_client import Client
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_key
from tests.fixtures.users import make_colleague
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.step_up import with_recent_step_up


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in(company.administrator)


def post(client: Client, path: str, body: object) -> Any:
    return client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json")


def put_policy(client: Client, body: object) -> Any:
    return client.put("/api/v1/policy", json.dumps(body), content_type="application/json")


def test_a_created_key_works_and_is_listed_without_its_secret(
    company: Company, administrator: Client
) -> None:
    created = post(
        administrator, "keys", {"name": "Laptop", "owner_email": company.developer.email}
    ).json()

    key = parse_key(created["text"])
    assert key is not None
    assert is_key_active(tenant_id=company.tenant_id, key=key, now=timezone.now())
    key_list = administrator.get("/api/v1/keys")
    assert [item["lookup_id"] for item in key_list.json()["items"]] == [key.lookup_id]
    assert created["text"] not in key_list.content.decode()


def test_a_created_key_reports_its_expiry(company: Company, administrator: Client) -> None:
    expires_at = timezone.now().replace(microsecond=0) + timedelta(days=7)
    owner = company.developer.email
    request = {"name": "x", "owner_email": owner, "expires_at": expires_at.isoformat()}

    created = post(administrator, "keys", request).json()

    assert datetime.fromisoformat(created["key"]["expires_at"]) == expires_at


def test_a_revoked_key_is_still_listed(company: Company, administrator: Client) -> None:
    created = make_key(company, company.developer)

    post(administrator, f"keys/{created.key.lookup_id}/revoke", {"reason": "lost"})

    (key,) = administrator.get("/api/v1/keys").json()["items"]
    assert key["state"] == "revoked"


def test_a_limit_sets_the_page_size(company: Company, administrator: Client) -> None:
    for name in ("one", "two", "three"):
        make_key(company, company.developer, name=name)

    first = administrator.get("/api/v1/keys?limit=1").json()
    second = administrator.get(f"/api/v1/keys?limit=1&cursor={first['next_cursor']}").json()

    assert [key["name"] for key in second["items"]] == ["two"]  # the newest key comes first


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "cursor=x", "limit="])
def test_an_invalid_limit_or_cursor_is_rejected(administrator: Client, query: str) -> None:
    response = administrator.get(f"/api/v1/keys?{query}")

    assert response.status_code == 422
    assert response.json()["code"] == "validation_failed"


@pytest.mark.parametrize("days", ["0", "91", "x", "-1"])
def test_an_invalid_number_of_days_is_rejected(administrator: Client, days: str) -> None:
    assert administrator.get(f"/api/v1/usage?days={days}").status_code == 422


def test_usage_lists_every_day_of_the_period(
    stopped_clock: datetime, administrator: Client
) -> None:
    days = administrator.get("/api/v1/usage?days=7").json()["days"]

    assert len(days) == 7
    assert days[-1]["day"] == stopped_clock.date().isoformat()


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ("{", 400, "invalid_json", None),
        (b"\xff", 400, "invalid_json", None),  # not UTF-8
        ('["name"]', 422, "validation_failed", None),
        ('{"name": 1}', 422, "validation_failed", "name"),
        ("{}", 422, "validation_failed", "name"),
        ('{"name": "x", "surprise": 1}', 422, "validation_failed", "surprise"),
        ('{"name": "x", "kind": "gold"}', 422, "validation_failed", "kind"),
        (
            '{"name": "x", "kind": "svc", "expires_at": "2027-01-01T00:00:00"}',
            422,
            "validation_failed",
            "expires_at",
        ),
        ('{"name": "", "kind": "svc"}', 422, "validation_failed", "name"),
        ('{"name": "x"}', 422, "validation_failed", "owner_id"),
        (
            '{"name": "x", "owner_email": "nobody@x.example"}',
            422,
            "validation_failed",
            "owner_email",
        ),
    ],
)
def test_a_malformed_body_is_rejected_with_the_fields_name(
    administrator: Client, body: str | bytes, status: int, code: str, field: str | None
) -> None:
    response = administrator.post("/api/v1/keys", body, content_type="application/json")

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert (response.json()["code"], response.json().get("field")) == (code, field)


def test_another_tenants_address_gets_the_same_error_as_an_unknown_one(
    administrator: Client, cast: Cast
) -> None:
    answers = [
        post(administrator, "keys", {"name": "x", "owner_email": email}).json()
        for email in (cast.acme.developer.email, "nobody@nowhere.example")
    ]

    assert answers[0] == answers[1]
    assert answers[0]["field"] == "owner_email"


def test_a_body_over_a_mebibyte_is_refused(administrator: Client) -> None:
    response = post(administrator, "keys", {"name": "x" * 1_100_000})

    assert response.status_code == 413
    assert response.json()["code"] == "too_large"


def test_a_policy_is_changed_with_a_reason(company: Company, administrator: Client) -> None:
    policy = serialize_policy(DEFAULT_POLICY) | {"max_concurrent_completions": 3}

    response = put_policy(
        administrator, {"policy": policy, "reason": "fewer", "expected_version": 1}
    )

    assert response.status_code == 200
    policy_version = administrator.get("/api/v1/policy").json()
    assert (policy_version["version"], policy_version["reason"]) == (2, "fewer")
    assert policy_version["policy"]["max_concurrent_completions"] == 3
    assert policy_version["author_email"] == company.administrator.email


def test_a_concurrent_change_of_the_policy_is_a_conflict(administrator: Client) -> None:
    policy = serialize_policy(DEFAULT_POLICY)
    put_policy(administrator, {"policy": policy, "reason": "first", "expected_version": 1})

    response = put_policy(
        administrator, {"policy": policy, "reason": "late", "expected_version": 1}
    )

    assert response.status_code == 409
    assert response.json()["code"] == "version_conflict"


def test_an_error_in_a_policy_names_the_field(administrator: Client) -> None:
    policy = serialize_policy(DEFAULT_POLICY) | {"isolation": "none"}

    response = put_policy(administrator, {"policy": policy, "reason": "x"})

    assert response.status_code == 422
    assert response.json()["field"] == "isolation"


def test_a_method_that_is_not_allowed_gets_the_allowed_ones(administrator: Client) -> None:
    response = administrator.delete("/api/v1/keys")

    assert response.status_code == 405
    assert set(response["Allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize("path", ["", "nothing", "keys/", "keys/x/y", "policy/1"])
def test_an_unknown_path_gets_a_problem_document(administrator: Client, path: str) -> None:
    response = administrator.get(f"/api/v1/{path}")

    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_a_user_without_a_tenant_is_forbidden(company: Company) -> None:
    user = User.objects.create(
        email=f"lonely@{company.slug}.example", name="", created_at=timezone.now()
    )
    client = Client()
    client.force_login(user)

    response = client.get("/api/v1/policy")

    assert response.status_code == 403
    assert response.json()["code"] == "no_active_tenant"


# With a NUL character, with a lone surrogate, and one character too long.
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "x" * 1_001])
def test_an_invalid_reason_is_rejected_with_the_fields_name(
    company: Company, administrator: Client, text: str
) -> None:
    created = make_key(company, company.developer)
    policy = serialize_policy(DEFAULT_POLICY)

    answers = [
        post(administrator, f"keys/{created.key.lookup_id}/revoke", {"reason": text}),
        put_policy(administrator, {"policy": policy, "reason": text}),
    ]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert [answer.json()["field"] for answer in answers] == ["reason", "reason"]


def test_a_name_with_a_nul_character_is_rejected(company: Company, administrator: Client) -> None:
    request = {"name": "a\0b", "owner_email": company.developer.email}

    assert post(administrator, "keys", request).status_code == 422


@pytest.mark.parametrize("path", ["/api/v1/keys/a%00b/revoke", "/keys/a%00b/revoke"])
def test_a_key_id_with_a_nul_character_is_not_found(
    company: Company, administrator: Client, path: str
) -> None:
    with_recent_step_up(administrator, company.administrator)

    assert administrator.post(path, content_type="application/json").status_code == 404


def test_removing_or_demoting_a_member_lists_the_keys_that_stay_active(
    company: Company, sign_in: SignIn
) -> None:
    administrator, alice = (make_colleague(company, Role.ADMINISTRATOR) for _ in range(2))
    request = KeyRequest(kind=KeyKind.SERVICE, owner_id=None, name="Night build", expires_at=None)
    service_key = create_key(actor=alice.actor, new=request, now=timezone.now()).key
    client = sign_in(administrator)

    demoted = client.patch(
        f"/api/v1/members/{alice.user_id}", {"role": "auditor"}, content_type="application/json"
    ).json()
    removed = post(client, f"members/{alice.user_id}/remove", {}).json()
    unowned_keys = client.get("/api/v1/keys/unowned").json()["items"]

    expected_keys = {
        "keys": [{"lookup_id": service_key.lookup_id, "kind": "svc", "name": "Night build"}]
    }
    assert demoted["role"] == "auditor"
    assert demoted["unowned_keys"] == removed["unowned_keys"] == expected_keys | {"total": 1}
    assert [(row["lookup_id"], row["created_by_email"]) for row in unowned_keys] == [
        (service_key.lookup_id, alice.email)
    ]


@override_settings(MAX_INVITATIONS_A_DAY=1)
def test_invitations_beyond_the_limit_are_refused_until_a_day_has_passed(
    administrator: Client,
) -> None:
    first = post(administrator, "invitations", {"email": "eve@guest.example"})
    second = post(administrator, "invitations", {"email": "ida@guest.example"})

    assert first.status_code == 201
    assert (second.status_code, second.json()["code"]) == (429, "limit_reached")
    assert 86_000 < int(second["Retry-After"]) <= 86_400


def test_the_rate_limit_of_one_caller_does_not_affect_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rate_limit.MAX_PER_MINUTE == 600
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 2)  # so that no minute ends meanwhile
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    for _ in range(2):
        count_request(first)

    with pytest.raises(ProblemRaised):
        count_request(first)
    count_request(second)
