"""Sensitive actions require a step-up: a recent authentication.

A form that is submitted without one is stored, and is submitted again after the step-up.
"""

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from console.layout.pending_form import PendingForm, find_pending_form, store_pending_form
from console.views.policies.review.policy_draft import PolicyDraft
from tenants.base.permissions import Role
from tenants.identity.invitations.queries import read_page_of_invitations
from tenants.identity.members.queries import find_member
from tenants.identity.scim.tokens import list_scim_tokens
from tenants.identity.sso.queries import get_rules
from tenants.policy.document import parse_policy, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import get_policy
from tests.fakes.console_client import Client
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form
from tests.integration.console.pages.step_up import with_recent_step_up

CONFIRM = "/account/confirm?next="


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in: SignIn) -> Client:
    """Return the owner's browser, without a recent step-up."""
    return sign_in(company.people[Role.OWNER])


def return_path(answer: Any) -> str:
    """Return the page to which the user returns after the step-up."""
    location = str(answer["Location"])
    assert location.startswith(CONFIRM)
    return parse_qs(urlsplit(location).query)["next"][0]


def end_step_up(client: Client) -> None:
    """Remove the recent step-up from the browser's session. The user stays signed in."""
    session = client.session
    session["account_authentication_methods"] = []
    session.save()


def submit_after_step_up(client: Client, company: Company, answer: Any) -> Any:
    """Simulate the owner's step-up, and submit the restored form.

    `answer` is the redirect to the step-up, which the first submission of the form got.
    """
    with_recent_step_up(client, company.people[Role.OWNER])
    page = client.get(return_path(answer)).content.decode()
    action = re.search(r'<form class="stack" method="post" action="([^"]+)"', page)
    assert action is not None
    return client.post(unescape(action[1]), parse_form(page))


def is_second_factor_required(company: Company) -> bool:
    return get_rules(actor=company.platform).is_mfa_required


def test_a_submitted_form_is_restored_after_the_step_up(company: Company, client: Client) -> None:
    answer = client.post("/sign-in-settings/second-factor/required")
    required_before = is_second_factor_required(company)

    submit_after_step_up(client, company, answer)

    assert (required_before, is_second_factor_required(company)) == (False, True)


def test_a_restored_form_keeps_the_typed_text(company: Company, client: Client) -> None:
    with_recent_step_up(client, company.people[Role.OWNER])
    form_token = re.search(
        r'name="form_token" value="([^"]+)"', client.get("/sign-in-settings").content.decode()
    )
    assert form_token is not None
    end_step_up(client)
    name = 'Okta "west"  <1>'
    form = {"token_name": name, "form_token": form_token[1]}

    answer = client.post("/sign-in-settings/scim", form)
    created = submit_after_step_up(client, company, answer)

    assert created.status_code == 200
    assert [token.name for token in list_scim_tokens(actor=company.platform)] == [name]


def test_a_pending_form_keeps_all_values_of_a_field(company: Company) -> None:
    actor = company.platform
    form = PendingForm("/keys/new?a=b", {"modes": ["inference", "chat"], "text": ["a\nb"]})

    token = store_pending_form(actor, form)

    assert find_pending_form(actor, token) == form


def test_a_restored_form_submits_all_values_of_a_field(company: Company, client: Client) -> None:
    form = PendingForm("/keys/new", {"modes": ["inference", "chat"]})
    token = store_pending_form(company.people[Role.OWNER].actor, form)

    page = client.get(f"/account/resume/{token}").content.decode()

    assert re.findall(r'name="modes" value="([^"]+)"', page) == ["inference", "chat"]


def test_a_users_pending_form_does_not_replace_anothers(company: Company) -> None:
    owner, administrator = company.people[Role.OWNER].actor, company.administrator.actor

    token = store_pending_form(owner, PendingForm("/sign-in-settings", {}))
    store_pending_form(administrator, PendingForm("/keys", {}))

    assert find_pending_form(owner, token) is not None


def test_a_pending_form_belongs_to_one_user_tenant_and_token(company: Company, cast: Cast) -> None:
    token = store_pending_form(company.platform, PendingForm("/sign-in-settings", {}))

    assert find_pending_form(company.developer.actor, token) is None
    assert find_pending_form(cast.globex.platform, token) is None
    assert find_pending_form(company.platform, "another") is None


def test_only_the_newest_pending_form_is_kept(company: Company) -> None:
    first = store_pending_form(company.platform, PendingForm("/sign-in-settings", {}))
    second = store_pending_form(company.platform, PendingForm("/keys", {}))

    assert find_pending_form(company.platform, first) is None
    assert find_pending_form(company.platform, second) is not None


def test_a_form_that_is_too_long_is_dropped_with_a_message(
    company: Company, client: Client
) -> None:
    answer = client.post("/sign-in-settings/second-factor/required", {"text": "x" * 300_000})

    resumed = client.get(return_path(answer))

    assert resumed.status_code == 410
    assert "submit the form again" in resumed.content.decode()


def test_a_step_up_expires_after_five_minutes(company: Company, client: Client) -> None:
    with_recent_step_up(client, company.people[Role.OWNER])
    fresh = client.get("/sign-in-settings/provider/openid")
    session = client.session
    records = session["account_authentication_methods"]
    for record in records:
        record["at"] -= 6 * 60
    session["account_authentication_methods"] = records
    session.save()

    expired = client.get("/sign-in-settings/provider/openid")

    assert fresh.status_code == 200
    assert return_path(expired) == "/sign-in-settings/provider/openid"


def set_policy_fields(company: Company, **fields: object) -> int:
    actor = company.platform
    document = serialize_policy(get_policy(actor=actor).policy) | fields
    return set_policy(actor=actor, document=document, reason="x", now=timezone.now()).version


def save_policy(client: Client, company: Company, **fields: object) -> Any:
    """Save a policy version as its review page does."""
    current = get_policy(actor=company.platform)
    draft = PolicyDraft(parse_policy(serialize_policy(current.policy) | fields), current.version)
    form = {
        "document": draft.document,
        "expected_version": draft.expected_version,
        "origin": draft.origin,
    }
    return client.post("/policies/review", form | {"step": "save", "reason": "Leaner"})


CONTENT_CAPTURE = {"consent_text": "tenant-1", "retention_days": 30, "training": False}


def test_a_policy_that_shortens_retention_requires_a_step_up(
    company: Company, client: Client
) -> None:
    version = set_policy_fields(company, content_capture=CONTENT_CAPTURE)

    answer = save_policy(client, company, content_capture=CONTENT_CAPTURE | {"retention_days": 7})
    current_version = get_policy(actor=company.platform).version
    submit_after_step_up(client, company, answer)

    assert current_version == version
    content_capture = get_policy(actor=company.platform).policy.content_capture
    assert content_capture is not None
    assert content_capture.retention_days == 7


def test_a_policy_that_deletes_nothing_needs_no_step_up(company: Company, client: Client) -> None:
    answer = save_policy(client, company, max_key_lifetime_days=90)

    assert answer["Location"] == "/policies"
    assert get_policy(actor=company.platform).policy.max_key_lifetime_days == 90


def test_undoing_content_capture_requires_a_step_up(company: Company, client: Client) -> None:
    version = set_policy_fields(company, content_capture=CONTENT_CAPTURE)

    answer = client.post(f"/policies/versions/{version}/undo")
    current_version = get_policy(actor=company.platform).version
    submit_after_step_up(client, company, answer)

    assert current_version == version
    assert get_policy(actor=company.platform).policy.content_capture is None


def test_undoing_a_version_that_deletes_nothing_needs_no_step_up(
    company: Company, client: Client
) -> None:
    version = set_policy_fields(company, max_key_lifetime_days=90)

    client.post(f"/policies/versions/{version}/undo")

    assert get_policy(actor=company.platform).version == version + 1


def test_lifting_a_users_second_factor_requirement_requires_a_step_up(
    company: Company, client: Client
) -> None:
    path = f"/policies/overrides/user/{company.developer.user_id}/review"
    post_data = {"document": '{"is_mfa_required": true}', "reason": "x"}
    client.post(path, post_data)

    answer = client.post(path, {"document": "{}", "reason": "x"})

    assert return_path(answer).startswith("/account/resume/")


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMINISTRATOR])
def test_inviting_an_owner_or_administrator_requires_a_step_up(
    company: Company, client: Client, role: Role
) -> None:
    email = f"new@{company.slug}.example"

    answer = client.post("/members/invite", {"emails": email, "role": role.value})
    before = list_invited_emails(company)
    submit_after_step_up(client, company, answer)

    assert (before, list_invited_emails(company)) == ([], [email])


def test_inviting_a_developer_needs_no_step_up(company: Company, client: Client) -> None:
    email = f"new@{company.slug}.example"

    client.post("/members/invite", {"emails": email, "role": Role.DEVELOPER.value})

    assert list_invited_emails(company) == [email]


def test_sending_an_owners_invitation_again_requires_a_step_up(
    company: Company, client: Client
) -> None:
    with_recent_step_up(client, company.people[Role.OWNER])
    form = {"emails": f"new@{company.slug}.example", "role": Role.OWNER.value}
    client.post("/members/invite", form)
    end_step_up(client)
    page = read_page_of_invitations(
        actor=company.platform, limit=1, cursor=None, now=timezone.now()
    )

    answer = client.post(f"/members/invitations/{page.rows[0].id}/send")

    assert return_path(answer).startswith("/account/resume/")


def test_an_administrator_who_may_not_change_owners_gets_no_step_up(
    company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.people[Role.ADMINISTRATOR])
    owner = company.people[Role.OWNER].user_id

    for step in ("role", "remove"):
        answer = client.post(f"/members/{owner}/{step}", {"role": Role.DEVELOPER.value})
        assert answer.status_code == 403
    assert find_member(actor=company.platform, user_id=owner).role is Role.OWNER


def list_invited_emails(company: Company) -> list[str]:
    page = read_page_of_invitations(
        actor=company.platform, limit=9, cursor=None, now=timezone.now()
    )
    return [row.email for row in page.rows]


def test_each_of_two_tabs_creates_one_key(company: Company, client: Client) -> None:
    tokens = []
    for _ in range(2):
        page = client.get("/keys/new").content.decode()
        match = re.search(r'name="form_token" value="([^"]+)"', page)
        assert match is not None
        tokens.append(match[1])
    form = {
        "kind": "live",
        "owner": company.developer.email,
        "lifetime": "90",
        "modes": "inference",
    }

    # Submit each tab's form twice. Each key gets the form token as its name.
    answers = [
        client.post("/keys/new", form | {"name": token, "form_token": token})
        for token in tokens * 2
    ]

    # The second submission of a form token is redirected, and creates no key.
    assert [answer.status_code for answer in answers] == [200, 200, 302, 302]


def test_a_form_token_is_refused_for_another_user(
    company: Company, client: Client, sign_in: SignIn
) -> None:
    page = client.get("/keys/new").content.decode()
    match = re.search(r'name="form_token" value="([^"]+)"', page)
    assert match is not None
    other_client = sign_in(company.people[Role.ADMINISTRATOR])

    answer = other_client.post("/keys/new", {"form_token": match[1]})

    assert answer["Location"] == "/keys"
