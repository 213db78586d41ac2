"""The content exclusion pages: gitignore-like syntax, the path test, and blocked requests."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from console.templatetags.email_addresses import breakable
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_completion
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form
from tests.integration.console.pages.queries import few_queries

PAGE = "/content-exclusion"
DENIALS = "/content-exclusion/denials"
PAYMENTS_RULE = '<code>keys/**</code> <span class="soft">payments</span>'
RULES_YAML = '"*":\n  - "**/.env"\npayments: ["keys/**"]'


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


def post_list(client: Client, step: str, rules: list[tuple[str, str]], **fields: str) -> str:
    """Post the rules as the list's form does.

    A rule is a pattern and a repository. The repository "" stands for all repositories.
    """
    form = fields | {
        "step": step,
        "expected_version": "1",
        "rule_pattern": [pattern for pattern, _ in rules],
        "rule_repository": [repository for _, repository in rules],
    }
    return str(client.post(PAGE, form).content.decode())


def parse_rules(page: str) -> list[tuple[str, str]]:
    """Return the rules of the list's form. The last one is the empty row for a new rule."""
    patterns, repositories = (
        re.findall(rf'name="rule_{name}" value="([^"]*)"', unescape(page))
        for name in ("pattern", "repository")
    )
    return list(zip(patterns, repositories, strict=True))


def post_yaml(client: Client, step: str, text: str = RULES_YAML, **fields: str) -> Any:
    values = {"step": step, "content_exclusion": text, "expected_version": "1"} | fields
    return client.post(PAGE, values)


@pytest.mark.parametrize("path", [PAGE, DENIALS])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"].startswith("/sign-in")


@pytest.mark.parametrize("role", list(Role))
def test_access_to_the_rules_follows_the_policy_permissions(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        answer = client.get(PAGE)

    may_read, may_write = (
        role_has_permission(role, permission)
        for permission in (Permission.READ_POLICY, Permission.WRITE_POLICY)
    )
    assert answer.status_code == (200 if may_read else 403)
    assert ("Review changes" in answer.content.decode()) is may_write
    assert client.post(PAGE, {"step": "test"}).status_code == (200 if may_write else 403)


@pytest.mark.parametrize("role", list(Role))
def test_only_roles_that_read_usage_see_blocked_requests(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        answer = client.get(DENIALS)

    may_read_usage = role_has_permission(role, Permission.READ_USAGE) or role_has_permission(
        role, Permission.READ_OWN_USAGE
    )
    assert answer.status_code == (200 if may_read_usage else 403)


def test_a_draft_can_be_tested_without_saving_it(company: Company, alice: Client) -> None:
    answer = post_yaml(alice, "test", repository="payments", path="keys/prod.txt")

    page = unescape(answer.content.decode())
    assert PAYMENTS_RULE in page
    assert 'payments: ["keys/**"]' in page
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 1


def test_a_path_that_matches_no_rule_is_not_excluded(alice: Client) -> None:
    page = post_yaml(alice, "test", repository="shop", path="keys/prod.txt").content.decode()

    assert "Not excluded by the tenant" in page


def test_the_path_test_ignores_case_and_accepts_backslashes_as_gateways_do(alice: Client) -> None:
    page = post_yaml(alice, "test", repository="Payments", path="KEYS\\Prod.txt").content.decode()

    assert PAYMENTS_RULE in unescape(page)


def test_a_user_without_write_permission_tests_the_current_rules(
    cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)

    part = client.get(PAGE, {"path": "deploy/.env"}, headers={"HX-Request": "true"})

    assert '<code>**/.env</code> <span class="soft">All repositories</span>' in unescape(
        part.content.decode()
    )
    assert "<html" not in part.content.decode()


@pytest.mark.parametrize("step", ["test", "review"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"*":\n  - *.pem', "Line 2: put patterns that start with * in quotes"),
        ("x" * 70_000, "at most"),
        ("a: [" + ",".join(f"f{n}" for n in range(201)) + "]", "repositories and 200 patterns."),
    ],
)
def test_invalid_rules_get_an_error_and_stay_in_the_form(
    alice: Client, step: str, text: str, message: str
) -> None:
    answer = post_yaml(alice, step, text, path="kept/path")

    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert message in page
    assert text in page
    assert "kept/path" in page


def test_a_change_is_reviewed_and_saved(company: Company, alice: Client) -> None:
    review = post_yaml(alice, "review").content.decode()
    draft = parse_form(review)

    answer = alice.post("/policies/review", draft | {"step": "save", "reason": "Audit"})

    policy_version = find_policy_in_force(tenant_id=company.tenant_id)
    assert '+ "payments": "keys/**"' in unescape(review)
    assert company.developer.email in review
    assert answer["Location"] == PAGE
    assert (policy_version.reason, policy_version.policy.content_exclusion) == (
        "Audit",
        {"*": ("**/.env",), "payments": ("keys/**",)},
    )


def test_a_draft_can_be_edited_after_its_review(alice: Client) -> None:
    draft = parse_form(post_yaml(alice, "review").content.decode())

    page = alice.post(PAGE, draft | {"step": "edit"}).content.decode()

    assert parse_rules(page) == [("**/.env", ""), ("keys/**", "payments"), ("", "")]
    assert parse_form(page)["expected_version"] == "1"


def test_the_list_adds_and_removes_rules_without_saving_them(
    company: Company, alice: Client
) -> None:
    rules = [("**/secrets/**", ""), ("a", "shop")]
    # "remove-1" removes the rule with the index 1.
    added = post_list(alice, "add", [*rules, ("*.pem", "shop")])
    removed = post_list(alice, "remove-1", [*rules, ("*.pem", "shop")])

    assert parse_rules(added) == [*rules, ("*.pem", "shop"), ("", "")]
    assert parse_rules(removed) == [("**/secrets/**", ""), ("*.pem", "shop"), ("", "")]
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 1


def test_a_pattern_alone_is_reviewed_as_a_rule_for_all_repositories(alice: Client) -> None:
    review_of_list = post_list(alice, "review", [("**/secrets/**", "")])
    review_of_yaml = post_yaml(alice, "review", "**/secrets/**").content.decode()

    for page in (review_of_list, review_of_yaml):
        assert '+ "*": "**/secrets/**"' in unescape(page)


def test_the_editor_changes_between_list_and_yaml_with_the_unsaved_rules(alice: Client) -> None:
    as_yaml = post_list(alice, "yaml", [("keys/**", "payments")])
    as_list = post_yaml(alice, "list", RULES_YAML).content.decode()

    assert parse_form(as_yaml)["content_exclusion"] == '"payments":\n  - "keys/**"'
    assert parse_rules(as_list) == [("**/.env", ""), ("keys/**", "payments"), ("", "")]


@pytest.mark.parametrize("step", ["remove-", "remove-99", "remove--1", "remove-9" * 5000, "?"])
def test_an_unknown_step_keeps_all_rules(alice: Client, step: str) -> None:
    assert parse_rules(post_list(alice, step, [("a", "")])) == [("a", ""), ("", "")]


def test_the_path_test_names_the_rule_in_the_list(alice: Client) -> None:
    page = post_list(
        alice, "test", [("**/secrets/**", ""), ("keys/**", "payments")], path="a/secrets/key"
    )

    assert "Excluded: this file never becomes part of a prompt." in page
    assert "<p><code>**/secrets/**</code>" in page
    assert "<p><code>keys/**</code>" not in page


def test_a_concurrent_change_is_reported_and_not_overwritten(
    company: Company, alice: Client
) -> None:
    first = parse_form(post_yaml(alice, "review", '"*": ["a"]').content.decode())
    alice.post("/policies/review", first | {"step": "save", "reason": "r"})

    second = post_yaml(alice, "review", '"*": ["b"]')

    assert second.status_code == 409
    assert "Changed by both of you: Content exclusion" in second.content.decode()
    assert json.loads(parse_form(second.content.decode())["document"])["content_exclusion"] == {
        "*": ["b"]
    }
    assert find_policy_in_force(tenant_id=company.tenant_id).policy.content_exclusion == {
        "*": ("a",)
    }


def test_blocked_requests_are_counted_by_reason(company: Company, alice: Client) -> None:
    for _ in range(3):
        make_completion(
            company,
            company.developer,
            finish_reason="error",
            error_code="path_excluded",
            mode="chat",
        )
    make_completion(company, company.developer, finish_reason="filtered", filter_reason="secret")

    with few_queries():
        page = alice.get(DENIALS, {"days": 30}).content.decode()

    assert "Path excluded" in page
    assert ">3</td>" in page
    assert "Filtered: possible secret" in page
    # The page has break opportunities in long addresses.
    assert breakable(company.developer.email) in page


def test_a_developer_sees_only_their_own_blocked_requests(
    company: Company, sign_in: SignIn
) -> None:
    for person in (company.administrator, company.developer):
        make_completion(company, person, finish_reason="error", error_code="feature_disabled")

    client = sign_in(company.developer)
    page = client.get(DENIALS).content.decode()
    file = client.get(DENIALS, {"as": "csv"}).content.decode()

    assert "1 request" in page
    assert "only your own" in page
    assert file.splitlines()[-1] == "only your own"


def test_another_tenants_blocked_requests_are_not_shown(
    cast: Cast, company: Company, alice: Client
) -> None:
    make_completion(
        cast.globex, cast.globex.developer, finish_reason="error", error_code="path_excluded"
    )

    assert "No blocked requests" in alice.get(DENIALS).content.decode()


def test_a_period_that_is_not_offered_is_rejected(alice: Client) -> None:
    assert alice.get(DENIALS, {"days": "9999"}).status_code == 400
