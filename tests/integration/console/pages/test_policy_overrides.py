"""Policy overrides of teams and users are created, changed and removed on the console's pages."""

import pytest
from django.test import Client

from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import PolicyOverrideVersion
from tenants.policy.document import DEFAULT_POLICY
from tenants.policy.overrides.queries import load_effective_policy
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form, post_form
from tests.integration.console.pages.override_forms import override_path, save_override
from tests.integration.console.pages.queries import few_queries


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


def test_an_override_for_a_user_is_saved_and_removed(company: Company, alice: Client) -> None:
    ada = company.developer
    answer = save_override(
        alice,
        ada,
        features_restriction="only",
        features=["inline"],
        content_exclusion='"*":\n  - "keys/**"',
        user_limit_per_minute="60",
        user_limit_burst="6",
    )

    policy = load_effective_policy(tenant_id=company.tenant_id, user_id=ada.user_id)
    page = alice.get("/policies/overrides").content.decode()
    # Without a draft, the review page offers to remove the override.
    review_fields = parse_form(alice.get(f"{override_path(ada)}/review").content.decode())
    post_form(alice, f"{override_path(ada)}/review", **(review_fields | {"reason": "Hired"}))
    page_after_removal = alice.get("/policies/overrides").content.decode()

    assert answer["Location"] == "/policies/overrides"
    assert "Override saved." in page
    assert "Override removed." in page_after_removal
    assert policy.features == frozenset({Mode.INLINE})
    assert "keys/**" in policy.content_exclusion["*"]
    assert ada.email in page
    assert "Contractor" in page  # the reason that save_override gives
    assert load_effective_policy(tenant_id=company.tenant_id, user_id=ada.user_id) == DEFAULT_POLICY


def test_an_override_can_be_created_for_a_team(company: Company, alice: Client) -> None:
    team_id = make_team(company, "Contractors")

    created = alice.post("/policies/overrides/new", {"team": team_id, "user_email": ""})

    assert created["Location"] == f"/policies/overrides/team/{team_id}"
    with few_queries():
        assert "Contractors" in alice.get(created["Location"]).content.decode()


def test_a_user_is_selected_by_email_address(company: Company, alice: Client) -> None:
    ada = company.developer

    # In capital letters: addresses are compared without regard to case.
    created = alice.post("/policies/overrides/new", {"user_email": ada.email.upper()})

    assert created["Location"] == override_path(ada)


@pytest.mark.parametrize("email", ["", "nobody@nowhere.example"])
def test_a_missing_or_unknown_user_gets_an_error_message(alice: Client, email: str) -> None:
    answer = alice.post("/policies/overrides/new", {"team": "", "user_email": email})

    assert (answer.status_code, answer.content.decode().count('class="wrong"')) == (400, 1)
    if email:
        assert f'value="{email}"' in answer.content.decode()


def test_an_invalid_exclusion_gets_an_error_with_its_line_number(
    company: Company, alice: Client
) -> None:
    path = override_path(company.developer)
    fields = parse_form(alice.get(path).content.decode())

    answer = post_form(alice, path, **(fields | {"content_exclusion": '"*":\n  - *.pem'}))

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Line 2: put patterns that start with * in quotes" in page
    assert "- *.pem" in page
    with tenant_scope(company.tenant_id):
        assert not PolicyOverrideVersion.objects.exists()


def test_a_concurrent_change_to_an_override_is_a_conflict(company: Company, alice: Client) -> None:
    path = override_path(company.developer)
    fields = parse_form(alice.get(path).content.decode())
    save_override(alice, company.developer, has_public_code_filter="on")

    conflict = post_form(alice, path, **(fields | {"is_mfa_required": "on"}))
    outdated_form = parse_form(conflict.content.decode()) | {"expected_version": "0", "reason": "r"}
    second_save = post_form(alice, f"{path}/review", **outdated_form)

    assert (conflict.status_code, second_save.status_code) == (409, 409)
    assert "Contractor" in conflict.content.decode()  # the reason that save_override gives
    with tenant_scope(company.tenant_id):
        assert PolicyOverrideVersion.objects.count() == 1


def assert_override_is_not_found(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404
    assert client.get(f"{path}/review").status_code == 404
    assert client.post(f"{path}/review", {"document": "{}", "reason": "r"}).status_code == 404


def test_another_tenants_users_and_teams_are_not_found(alice: Client) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)

    assert_override_is_not_found(alice, override_path(globex.developer))
    assert_override_is_not_found(alice, f"/policies/overrides/team/{make_team(globex)}")


def test_an_unknown_kind_of_subject_is_not_found(company: Company, alice: Client) -> None:
    assert_override_is_not_found(alice, f"/policies/overrides/x/{company.developer.user_id}")
