"""A policy is read, changed after a review, and undone on the console's pages."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.policy import Mode, TenantPolicy
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.models import AuditEntry
from tenants.policy.document import DEFAULT_POLICY, parse_policy, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force, get_policy
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form, post_form
from tests.integration.console.pages.queries import MAX_QUERIES, few_queries

PAGES = (
    "/policies",
    "/policies/versions",
    "/policies/versions/1",
    "/policies/effective",
    "/policies/explain",
)
FORM_PATHS = ("/policies/edit", "/policies/overrides/new", "/policies/review?from=1")
DEFAULT_DOCUMENT = json.dumps(serialize_policy(DEFAULT_POLICY))
OTHER_AUTHORS_REASON = "somebody else"


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


def find_policy(company: Company) -> TenantPolicy:
    return find_policy_in_force(tenant_id=company.tenant_id).policy


def submit_policy_form(client: Client, **changes: Any) -> Any:
    """Post the policy's form with these changes.

    The response is the review page. If a value is invalid, it is the form with its errors.
    """
    fields = parse_form(client.get("/policies/edit").content.decode())
    return post_form(client, "/policies/edit", **(fields | changes))


def set_policy_fields(company: Company, **fields: object) -> None:
    """Save a new version, as another author. A company begins with version 1."""
    set_policy(
        actor=company.platform,
        document=serialize_policy(find_policy(company)) | fields,
        reason=OTHER_AUTHORS_REASON,
        now=timezone.now(),
    )


@pytest.mark.parametrize("path", [*PAGES, *FORM_PATHS, "/policies/overrides"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    answer = Client().get(path)

    assert answer["Location"].startswith("/sign-in")


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", PAGES)
def test_only_roles_that_read_policies_open_the_pages(
    cast: Cast, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        answer = client.get(path)

    assert answer.status_code == (200 if role_has_permission(role, Permission.READ_POLICY) else 403)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", FORM_PATHS)
def test_only_roles_that_write_policies_open_the_forms(
    cast: Cast, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(cast.acme.people[role])

    with few_queries():
        answer = client.get(path)

    assert answer.status_code == (
        200 if role_has_permission(role, Permission.WRITE_POLICY) else 403
    )


@pytest.mark.parametrize("role", list(Role))
def test_only_roles_that_read_overrides_see_the_overrides(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    answer = sign_in(cast.acme.people[role]).get("/policies/overrides")

    assert answer.status_code == (
        200 if role_has_permission(role, Permission.READ_OVERRIDES) else 403
    )


def test_a_user_without_write_permission_gets_no_edit_link(cast: Cast, sign_in: SignIn) -> None:
    page = sign_in(cast.acme.people[Role.AUDITOR]).get("/policies").content.decode()

    assert "/policies/edit" not in page
    assert "**/.env" in page


def test_submitting_the_unchanged_form_changes_nothing(company: Company, alice: Client) -> None:
    set_policy_fields(
        company,
        models=["m1"],
        regions=[],
        content_capture={"consent_text": "tenant-1", "retention_days": 12, "training": True},
        limits={"key": {"per_minute": 5, "burst": 2}, "tokens_per_day": {"fast": 1000}},
        retention_days={"usage_records": 90},
        max_key_lifetime_days=30,
        retrieval=["b", "a"],
    )

    answer = submit_policy_form(alice)

    assert answer.status_code == 200
    document = json.loads(parse_form(answer.content.decode())["document"])
    assert parse_policy(document) == find_policy(company)
    assert "No changes" in answer.content.decode()


def test_a_review_lists_changes_and_affected_users_and_saves_nothing(
    company: Company, alice: Client
) -> None:
    set_policy_fields(company, models=["m1"])
    answer = submit_policy_form(
        alice, features=["inline", "fim"], models_restriction="only", models=[]
    )

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "− Chat" in page
    assert "− m1" in page
    assert company.developer.email in page
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 2


def test_a_review_runs_few_queries(alice: Client) -> None:
    fields = parse_form(alice.get("/policies/edit").content.decode())

    with few_queries(MAX_QUERIES + 1):  # it also finds the affected users
        post_form(alice, "/policies/edit", **(fields | {"max_key_lifetime_days": "30"}))


def test_a_reviewed_change_is_saved_with_its_reason(company: Company, alice: Client) -> None:
    draft = parse_form(submit_policy_form(alice, has_public_code_filter="on").content.decode())

    answer = post_form(
        alice, "/policies/review", **(draft | {"step": "save", "reason": "Licences"})
    )

    policy_version = find_policy_in_force(tenant_id=company.tenant_id)
    assert answer["Location"] == "/policies"
    assert (policy_version.version, policy_version.reason, policy_version.author_email) == (
        2,
        "Licences",
        company.administrator.email,
    )
    assert policy_version.policy.has_public_code_filter
    assert "Version 2 saved" in alice.get("/policies").content.decode()
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.order_by("-sequence").first()
    assert entry is not None
    assert (entry.action, entry.reason) == ("policy.changed", "Licences")


def test_the_policy_can_require_a_file_path_with_each_request(
    company: Company, alice: Client
) -> None:
    draft = parse_form(submit_policy_form(alice, requires_path="on").content.decode())

    post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "Exclusion"}))

    assert find_policy_in_force(tenant_id=company.tenant_id).policy.requires_path
    assert "Require a file path with each request" in alice.get("/policies/edit").content.decode()


def test_saving_without_a_reason_is_refused_and_keeps_the_draft(
    company: Company, alice: Client
) -> None:
    draft = parse_form(submit_policy_form(alice, has_public_code_filter="on").content.decode())

    answer = post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "  "}))

    page = answer.content.decode()
    assert (answer.status_code, page.count('class="wrong"')) == (400, 1)
    assert parse_form(page)["document"] == draft["document"]
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_concurrent_completions", "0"),
        ("max_concurrent_completions", "many"),
        ("limits_user_burst", ""),
        ("content_capture_retention_days", "400"),
        ("retention_days_usage_records", "3"),
        ("max_key_lifetime_days", "-1"),
        ("isolation", "none"),
        ("retrieval", "x" * 201),
        ("models", "m2"),
    ],
)
def test_an_invalid_value_gets_an_error_at_its_field_and_keeps_the_input(
    company: Company, alice: Client, field: str, value: str
) -> None:
    set_policy_fields(company, models=["m1"])
    answer = submit_policy_form(
        alice,
        **{
            "models_restriction": "only",
            "retrieval": "keep me",
            "content_capture": "on",
            field: value,
        },
    )

    page = answer.content.decode()
    assert answer.status_code == 400
    (wrong_field,) = re.findall(r'field-wrong">(.*?)class="wrong"', page, re.DOTALL)
    assert f'name="{field}"' in wrong_field
    assert "keep me" in page or field == "retrieval"
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 2


def test_a_draft_can_be_edited_after_its_review(alice: Client) -> None:
    draft = parse_form(submit_policy_form(alice, retrieval="shop").content.decode())

    page = post_form(alice, "/policies/edit", **(draft | {"step": "edit"})).content.decode()

    assert parse_form(page)["retrieval"] == "shop"


def test_a_concurrent_change_is_shown_and_can_be_merged(company: Company, alice: Client) -> None:
    draft = parse_form(submit_policy_form(alice, retrieval="shop").content.decode())
    set_policy_fields(company, has_public_code_filter=True)

    conflict = post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "Mine"}))
    page = conflict.content.decode()
    merged = post_form(alice, "/policies/review", **(parse_form(page) | {"step": "merge"}))
    saved = parse_form(merged.content.decode()) | {"step": "save"}
    answer = post_form(alice, "/policies/review", **saved)

    assert conflict.status_code == 409
    assert OTHER_AUTHORS_REASON in page
    assert "shop" in page
    assert merged.status_code == 200
    assert saved["reason"] == "Mine"
    assert answer.status_code == 302
    assert find_policy(company).retrieval == ("shop",)
    assert find_policy(company).has_public_code_filter
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 3


def test_a_setting_that_both_authors_changed_is_named(company: Company, alice: Client) -> None:
    draft = parse_form(submit_policy_form(alice, retrieval="shop").content.decode())
    set_policy_fields(company, retrieval=["theirs"])

    conflict = post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "r"}))

    assert "Changed by both of you: Retrieval" in conflict.content.decode()
    assert find_policy(company).retrieval == ("theirs",)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"document": "{", "expected_version": "1"},
        {"document": "[" * 100_000, "expected_version": "1"},  # nested too deeply for Python
        {"document": "{}", "expected_version": "1"},
        {"document": DEFAULT_DOCUMENT, "expected_version": "9" * 5000},  # too long for Python
        {"document": DEFAULT_DOCUMENT, "expected_version": "1", "origin": "x"},
    ],
)
def test_a_forged_draft_is_rejected(alice: Client, fields: dict[str, str]) -> None:
    assert alice.post("/policies/review", fields).status_code == 400


def test_the_current_version_can_be_undone(company: Company, alice: Client) -> None:
    draft = parse_form(submit_policy_form(alice, has_public_code_filter="on").content.decode())
    post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "r"}))

    alice.post("/policies/versions/2/undo")

    policy_version = find_policy_in_force(tenant_id=company.tenant_id)
    assert (policy_version.version, policy_version.policy) == (3, DEFAULT_POLICY)


def test_the_reason_of_an_undo_is_shown_in_the_readers_language(
    company: Company, alice: Client
) -> None:
    draft = parse_form(submit_policy_form(alice, has_public_code_filter="on").content.decode())
    post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "r"}))
    alice.cookies["caret-language"] = "de"

    alice.post("/policies/versions/2/undo")

    in_german = alice.get("/policies/versions").content.decode()
    alice.cookies["caret-language"] = "en"
    in_english = alice.get("/policies/versions").content.decode()
    assert get_policy(actor=company.platform).reason == "Undo of version 2."
    assert "Version 2 rückgängig gemacht." in in_german
    assert "Undo of version 2." in in_english


def test_an_outdated_version_cannot_be_undone(company: Company, alice: Client) -> None:
    for _ in range(2):  # versions 2 and 3
        set_policy_fields(company, has_public_code_filter=True)

    page = alice.post("/policies/versions/2/undo", follow=True).content.decode()

    assert find_policy_in_force(tenant_id=company.tenant_id).version == 3
    assert "toast-error" in page


def test_an_old_version_is_restored_after_a_review(company: Company, alice: Client) -> None:
    set_policy_fields(company, features=["inline"])

    page = alice.get("/policies/review?from=1").content.decode()
    draft = parse_form(page)
    post_form(alice, "/policies/review", **(draft | {"step": "save", "reason": "As it was"}))

    assert "+ Chat" in page
    assert find_policy(company).features == frozenset(Mode)


def test_a_version_names_its_author_time_and_reason(company: Company, alice: Client) -> None:
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(find_policy(company)) | {"features": ["inline"]},
        reason="Works council",
        now=timezone.now(),
    )

    page = alice.get("/policies/versions/2").content.decode()
    (lead,) = re.findall(r'<p class="soft lead">(.*?)</p>', page, re.DOTALL)

    assert "<time " in lead
    assert company.administrator.email in lead
    assert "“Works council”" in lead


def test_any_two_versions_can_be_compared(company: Company, alice: Client) -> None:
    set_policy_fields(company, features=["inline"])
    set_policy_fields(company, features=["inline", "chat"])

    page = alice.get("/policies/versions/3?with=1").content.decode()

    assert "− Docstrings" in page
    assert "− Chat" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/policies/versions/2",
        "/policies/versions/99999999999",
        "/policies/versions/1?with=7",
        "/policies/review?from=9",
        "/policies/review?from=x",
        "/policies/review",
    ],
)
def test_an_unknown_version_is_not_found(alice: Client, path: str) -> None:
    assert alice.get(path).status_code == 404


def test_the_version_history_is_paginated(company: Company, alice: Client) -> None:
    for _ in range(27):  # so that there are 28 versions, and 25 are on the first page
        set_policy_fields(company, has_public_code_filter=True)

    first = alice.get("/policies/versions").content.decode()
    cursor = re.search(r'href="/policies/versions\?cursor=([^"]+)"', first)
    assert cursor is not None
    older_page = alice.get(f"/policies/versions?cursor={cursor[1]}").content.decode()

    assert (first.count('class="name"'), older_page.count('class="name"')) == (25, 3)
    assert alice.get("/policies/versions?cursor=x").status_code == 400
