"""Policies over REST: concurrent changes, previews, explanations and counts of denials."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import ApiKey, PolicyVersion
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Cast,
    Company,
    make_company,
    make_completion,
    make_key,
)
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn

# A policy override that allows experiments and every mode except chat.
NO_CHAT: dict[str, Any] = {
    "features": ["inline", "fim", "block", "docstring", "edit", "experiments"]
}


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


@pytest.fixture
def developer(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.developer)


def send(client: Client, method: str, path: str, body: object, **headers: str) -> Any:
    """Send the body as JSON. The header If-Match is given as `If_Match`."""
    return client.generic(
        method,
        f"/api/v1/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def make_policy(**fields: object) -> dict[str, object]:
    return serialize_policy(DEFAULT_POLICY) | fields


def override_path(company: Company) -> str:
    return f"policy/overrides/user/{company.developer.user_id}"


def test_a_stale_etag_is_rejected_with_both_versions(administrator: Client) -> None:
    current = administrator.get("/api/v1/policy")
    body = {"policy": make_policy(), "reason": "test"}

    first = send(administrator, "PUT", "policy", body, If_Match=current["ETag"])
    second = send(administrator, "PUT", "policy", body, If_Match=current["ETag"])

    assert (first.status_code, first["ETag"]) == (200, '"v2"')
    assert second.status_code == 412
    problem = second.json()
    assert problem["code"] == "version_conflict"
    assert (problem["version_in_force"], problem["version_replaced"]) == (2, 1)


def test_a_stale_version_in_the_body_is_a_conflict(administrator: Client) -> None:
    body = {"policy": make_policy(), "reason": "test", "expected_version": 1}

    answers = [send(administrator, "PUT", "policy", body) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 409]
    assert answers[1].json()["version_in_force"] == 2


@pytest.mark.parametrize("tag", ["x", '"v1', 'W/"v1"', '"v99999999999"', '"policy"', ""])
def test_an_invalid_etag_replaces_nothing(
    company: Company, administrator: Client, tag: str
) -> None:
    response = send(
        administrator, "PUT", "policy", {"policy": make_policy(), "reason": "x"}, If_Match=tag
    )

    assert (response.status_code, response.json()["field"]) == (412, "If-Match")
    with tenant_scope(company.tenant_id):
        assert PolicyVersion.objects.count() == 1


def test_a_wildcard_etag_replaces_any_version(administrator: Client) -> None:
    body = {"policy": make_policy(), "reason": "test"}

    assert send(administrator, "PUT", "policy", body, If_Match="*").status_code == 200


# `field` is the name in the error; None: the policy is accepted.
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"models": []}, None),
        ({"models": ["x"] * 3, "regions": ["eu"]}, None),
        ({"models": [f"m{n}" for n in range(101)]}, "models"),
        ({"regions": [""]}, "regions"),
        ({"regions": "eu"}, "regions"),
        ({"retention_days": {"usage_records": 90}}, None),
        ({"retention_days": {"usage_records": 0}}, "retention_days.usage_records"),
        ({"retention_days": {"Usage; DROP": 1}}, "retention_days"),
        ({"max_key_lifetime_days": 3_661}, "max_key_lifetime_days"),  # one day too many
        ({"revoke_idle_keys_after_days": -1}, "revoke_idle_keys_after_days"),
        ({"is_mfa_required": True}, None),
        ({"is_mfa_required": "yes"}, "is_mfa_required"),
    ],
)
def test_policy_fields_are_validated(
    administrator: Client, fields: dict[str, object], field: str | None
) -> None:
    body = {"policy": make_policy(**fields), "reason": "test"}

    response = send(administrator, "PUT", "policy", body)

    assert response.status_code == (200 if field is None else 422)
    assert response.json().get("field") == field


def test_versions_are_listed_with_author_and_reason(
    company: Company, administrator: Client
) -> None:
    for reason in ("one", "two"):
        send(administrator, "PUT", "policy", {"policy": make_policy(), "reason": reason})

    first = administrator.get("/api/v1/policy/versions?limit=2").json()
    second = administrator.get(
        f"/api/v1/policy/versions?limit=2&cursor={first['next_cursor']}"
    ).json()

    assert [row["reason"] for row in first["items"]] == ["two", "one"]
    assert [row["version"] for row in second["items"]] == [1]
    assert first["items"][0]["author_email"] == company.administrator.email


def test_an_override_is_set_read_and_lifted(company: Company, administrator: Client) -> None:
    path = override_path(company)

    saved = send(
        administrator, "PUT", path, {"override": NO_CHAT, "reason": "r", "expected_version": 0}
    )
    override = administrator.get(f"/api/v1/{path}")
    outdated = send(administrator, "PUT", path, {"override": {}, "reason": "r"}, If_Match='"v0"')
    lifted_override = send(
        administrator, "PUT", path, {"override": {}, "reason": "r"}, If_Match=override["ETag"]
    )

    assert saved.json() == override.json()
    assert override.json()["override"] == {"features": sorted(NO_CHAT["features"])}
    assert override.json()["name"] == company.developer.email
    assert (
        outdated.status_code,
        lifted_override.status_code,
        lifted_override.json()["version"],
    ) == (
        412,
        200,
        2,
    )


@pytest.mark.parametrize("path", ["policy/overrides/planet/x", "policy/overrides/user/x"])
def test_an_override_with_an_invalid_subject_is_rejected(administrator: Client, path: str) -> None:
    assert administrator.get(f"/api/v1/{path}").status_code == 422


def test_a_preview_lists_changes_and_affected_members(
    company: Company, administrator: Client
) -> None:
    send(administrator, "PUT", override_path(company), {"override": NO_CHAT, "reason": "r"})
    make_key(company, company.developer)
    policy = make_policy(
        features=["inline", "fim", "block", "docstring", "edit"],
        content_exclusion={"*": ["**/.env", "vault/*"]},
        max_key_lifetime_days=30,
        revoke_idle_keys_after_days=90,
    )

    preview = send(administrator, "POST", "policy/preview", {"policy": policy}).json()

    assert (preview["num_members"], preview["num_affected"]) == (2, 2)
    assert preview["affected"] == sorted(person.email for person in company.people.values())
    # The override has already removed chat from the developer.
    assert preview["features_lost"] == {"chat": 1}
    assert {"repository": "*", "glob": "vault/*"} in preview["globs_added"]
    assert {"repository": "*", "glob": "**/*.pem"} in preview["globs_removed"]
    assert (preview["keys_beyond_lifetime"], preview["keys_to_be_revoked"]) == (1, 0)
    assert administrator.get("/api/v1/policy").json()["version"] == 1


def test_a_preview_counts_keys_that_would_be_revoked(
    company: Company, administrator: Client
) -> None:
    created = make_key(company, company.developer)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=created.key.lookup_id).update(
            created_at=timezone.now() - timedelta(days=91)
        )

    policy = make_policy(revoke_idle_keys_after_days=90)
    preview = send(administrator, "POST", "policy/preview", {"policy": policy}).json()

    assert preview["keys_to_be_revoked"] == 1


def test_a_preview_of_an_invalid_policy_is_rejected(administrator: Client) -> None:
    response = send(administrator, "POST", "policy/preview", {"policy": {"features": []}})

    assert response.status_code == 422


def test_an_overrides_preview_affects_only_its_subject(
    company: Company, administrator: Client
) -> None:
    path = f"{override_path(company)}/preview"

    preview = send(administrator, "POST", path, {"override": NO_CHAT}).json()

    assert preview["affected"] == [company.developer.email]
    assert preview["features_lost"] == {"chat": 1}
    team = f"policy/overrides/team/{make_team(company)}/preview"
    assert send(administrator, "POST", team, {"override": NO_CHAT}).json()["num_affected"] == 0


def test_a_preview_counts_no_keys_beyond_an_unchanged_lifetime(
    company: Company, administrator: Client
) -> None:
    make_key(company, company.developer)
    policy = make_policy(max_key_lifetime_days=30)
    send(administrator, "PUT", "policy", {"policy": policy, "reason": "r"})
    other_policy = make_policy(max_key_lifetime_days=30, features=["inline"])
    path = f"{override_path(company)}/preview"

    preview = send(administrator, "POST", "policy/preview", {"policy": other_policy}).json()
    override_preview = send(administrator, "POST", path, {"override": NO_CHAT}).json()

    assert preview["keys_beyond_lifetime"] == 0
    assert override_preview["keys_beyond_lifetime"] == 0


def test_an_overrides_preview_counts_its_members_keys_beyond_the_new_lifetime(
    company: Company, administrator: Client
) -> None:
    for person in company.people.values():
        make_key(company, person)
    path, override = f"{override_path(company)}/preview", {"max_key_lifetime_days": 30}

    preview = send(administrator, "POST", path, {"override": override}).json()

    assert preview["keys_beyond_lifetime"] == 1


def test_an_explanation_names_the_deciding_rules_and_overrides(
    company: Company, administrator: Client, developer: Client
) -> None:
    send(administrator, "PUT", override_path(company), {"override": NO_CHAT, "reason": "r"})
    query = f"mode=chat&repository=shop&path=deploy/.env&user_email={company.developer.email}"

    explanation = administrator.get(f"/api/v1/policy/explain?{query}").json()

    assert not explanation["is_allowed"]
    assert [(rule["policy_level"], rule["code"]) for rule in explanation["rules"]] == [
        ("tenant", "path_excluded"),
        (f"user:{company.developer.email}", "feature_disabled"),
    ]
    assert "chat" not in explanation["policy"]["features"]
    assert developer.get(f"/api/v1/policy/explain?{query}").json() == explanation
    own_explanation = developer.get(
        "/api/v1/policy/explain?mode=chat&repository=shop&path=deploy/.env"
    )
    assert own_explanation.json() == explanation


# None stands for the administrator's address.
@pytest.mark.parametrize("email", [None, "nobody@x.example"])
def test_a_developer_cannot_explain_another_users_policy(
    company: Company, developer: Client, email: str | None
) -> None:
    address = company.administrator.email if email is None else email

    response = developer.get(f"/api/v1/policy/explain?user_email={address}")

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_another_tenants_user_cannot_be_explained(cast: Cast, sign_in: SignIn) -> None:
    address = cast.acme.developer.email
    client = sign_in(cast.globex.administrator)

    response = client.get(f"/api/v1/policy/explain?user_email={address}")

    assert (response.status_code, response.json()["field"]) == (422, "user_email")


def test_denials_are_counted_by_reason(company: Company, administrator: Client) -> None:
    ada = company.developer
    for fields in (
        {"finish_reason": "error", "error_code": "path_excluded"},
        {"finish_reason": "error", "error_code": "path_excluded"},
        {"finish_reason": "filtered", "filter_reason": "secret"},
        {"finish_reason": "stop", "filter_reason": "secret"},  # text shown: no denial
        {"finish_reason": "error", "error_code": "engine_failed"},
        {},
    ):
        # For mypy, `fields` might contain `occurred_at`, so the call passes it explicitly.
        make_completion(company, ada, occurred_at=None, **fields)

    denials = administrator.get("/api/v1/policy/denials").json()["denials"]

    assert [(denial["reason"], denial["num_denials"]) for denial in denials] == [
        ("path_excluded", 2),
        ("secret", 1),
    ]
    assert {denial["user_id"] for denial in denials} == {ada.user_id}


def test_a_developer_sees_only_their_own_denials(company: Company, developer: Client) -> None:
    make_completion(
        company, company.administrator, finish_reason="error", error_code="path_excluded"
    )
    make_completion(company, company.developer, finish_reason="filtered", filter_reason="secret")

    denials = developer.get("/api/v1/policy/denials").json()["denials"]

    assert [denial["reason"] for denial in denials] == ["secret"]


def test_another_tenants_denials_are_not_counted(
    company: Company, administrator: Client, cast: Cast
) -> None:
    make_completion(
        cast.acme, cast.acme.developer, finish_reason="error", error_code="path_excluded"
    )

    assert administrator.get("/api/v1/policy/denials").json()["denials"] == []


def test_an_auditor_reads_the_policy_endpoints(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.people[Role.AUDITOR])

    for path in ("policy/overrides", "policy/versions", "policy/denials", "policy/explain"):
        assert client.get(f"/api/v1/{path}").status_code == 200
