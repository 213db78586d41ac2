"""The sign-in settings of a tenant, as each role and another tenant see them."""

import re
import uuid

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.domains.operations import claim_domain
from tenants.identity.domains.queries import list_domains
from tenants.identity.scim.groups import set_group_role
from tenants.identity.scim.tokens import create_scim_token, list_scim_tokens
from tenants.identity.sso.operations import OidcProviderConfig, set_provider
from tenants.identity.sso.queries import SignInRules, get_rules
from tenants.identity.teams.operations import create_team
from tenants.models import ScimGroup
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

UNKNOWN_ID = uuid.UUID(int=0)
VALID_PROVIDER = {
    "issuer": "https://login.example.com",
    "client_id": "caret",
    "client_secret": "s3cret",
}


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the owner's browser."""
    return sign_in_with_step_up(company.people[Role.OWNER])


def find_sign_in_rules(company: Company) -> SignInRules:
    return get_rules(actor=company.platform)


def list_domain_names(company: Company) -> list[str]:
    return [domain.name for domain in list_domains(actor=company.platform)]


def list_token_names(company: Company) -> list[str]:
    tokens = list_scim_tokens(actor=company.platform)
    return [token.name for token in tokens if token.revoked_at is None]


def find_form_token(client: Client) -> str:
    match = re.search(
        r'name="form_token" value="([^"]+)"', client.get("/sign-in-settings").content.decode()
    )
    assert match is not None
    return match[1]


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().get("/sign-in-settings")["Location"] == "/sign-in?next=/sign-in-settings"


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (Role.OWNER, 200),
        (Role.ADMINISTRATOR, 200),
        (Role.BILLING, 403),
        (Role.AUDITOR, 200),
        (Role.DEVELOPER, 403),
    ],
)
def test_only_an_owner_sees_and_opens_the_provider_forms(
    cast: Cast, sign_in_with_step_up: SignIn, role: Role, status: int
) -> None:
    client = sign_in_with_step_up(cast.acme.people[role])
    is_owner = role is Role.OWNER

    overview = client.get("/sign-in-settings")

    assert overview.status_code == status
    assert ("/sign-in-settings/provider/openid" in overview.content.decode()) == is_owner
    for path in ("openid", "saml", "remove"):
        answer = client.get(f"/sign-in-settings/provider/{path}")
        assert answer.status_code == (200 if is_owner else 403)


@pytest.mark.parametrize(
    "path",
    [
        *("domains", f"domains/{UNKNOWN_ID}/verify", f"domains/{UNKNOWN_ID}/release"),
        *("scim", f"scim/{UNKNOWN_ID}/revoke", f"groups/{UNKNOWN_ID}/role"),
        *("provider/openid", "provider/saml", "provider/remove", "second-factor/required"),
    ],
)
def test_an_administrator_cannot_change_sign_in_settings(
    company: Company, sign_in_with_step_up: SignIn, path: str
) -> None:
    answer = sign_in_with_step_up(company.administrator).post(
        f"/sign-in-settings/{path}", VALID_PROVIDER
    )

    assert answer.status_code == 403
    assert find_sign_in_rules(company) == SignInRules(is_mfa_required=False, provider=None)


def test_an_owner_claims_and_releases_a_domain(company: Company, client: Client) -> None:
    name = f"{company.slug}.example"
    client.post("/sign-in-settings/domains", {"domain": name.upper()})
    [claimed] = list_domains(actor=company.platform)

    page = client.get("/sign-in-settings").content.decode()
    confirmation = client.get(f"/sign-in-settings/domains/{claimed.id}/release").content.decode()
    client.post(f"/sign-in-settings/domains/{claimed.id}/release")

    assert claimed.name == name
    assert claimed.txt_record in page
    assert f"Release {name}?" in confirmation
    assert list_domain_names(company) == []


@pytest.mark.parametrize("name", ["", "no domain", "x" * 300])
def test_an_invalid_domain_gets_an_error_message(
    company: Company, client: Client, name: str
) -> None:
    answer = client.post("/sign-in-settings/domains", {"domain": name})

    assert answer.status_code == 400
    assert 'class="wrong"' in answer.content.decode()
    assert list_domain_names(company) == []


def test_another_tenants_domain_and_token_are_not_found(
    company: Company, cast: Cast, sign_in_with_step_up: SignIn
) -> None:
    now = timezone.now()
    domain = claim_domain(actor=company.platform, name="initech.example", now=now)
    scim_token = create_scim_token(actor=company.platform, name="Okta", now=now)
    client = sign_in_with_step_up(cast.acme.people[Role.OWNER])

    for path in (f"domains/{domain.id}/verify", f"domains/{domain.id}/release"):
        assert client.post(f"/sign-in-settings/{path}").status_code == 404
    assert client.post(f"/sign-in-settings/scim/{scim_token.token.id}/revoke").status_code == 404
    assert list_domain_names(company) == ["initech.example"]
    assert list_token_names(company) == ["Okta"]


def test_an_owner_makes_the_second_factor_required(company: Company, client: Client) -> None:
    answer = client.post("/sign-in-settings/second-factor/required")

    assert answer["Location"] == "/sign-in-settings"
    assert find_sign_in_rules(company).is_mfa_required


@pytest.mark.parametrize(
    ("is_required", "is_required_by_policy", "label"),
    [
        (False, False, "Require"),
        (True, False, "Make optional"),
        (False, True, "Require here, too"),
        (True, True, "Remove this requirement"),
    ],
)
def test_the_button_for_the_second_factor_considers_the_policy(
    is_required: bool, is_required_by_policy: bool, label: str
) -> None:
    rules = SignInRules(
        is_mfa_required=is_required,
        provider=None,
        is_mfa_required_by_policy=is_required_by_policy,
    )

    card = render_to_string(
        "console/sign_in_settings/_two_factor.html", {"rules": rules, "can_change": True}
    )

    assert f'<button class="button">{label}</button>' in card
    assert ("Optional" in card) == (not is_required and not is_required_by_policy)


def test_a_provider_is_configured_shown_without_its_secret_and_removed(
    company: Company, client: Client
) -> None:
    before = client.get("/sign-in-settings/provider/openid").content.decode()
    page = client.post(
        "/sign-in-settings/provider/openid", VALID_PROVIDER, follow=True
    ).content.decode()
    provider = find_sign_in_rules(company).provider
    client.post("/sign-in-settings/provider/remove")

    assert f"/sign-in/provider/{company.tenant_id}" in before
    assert provider is not None
    assert provider.issuer == VALID_PROVIDER["issuer"]
    assert VALID_PROVIDER["issuer"] in page
    assert VALID_PROVIDER["client_secret"] not in page
    assert find_sign_in_rules(company).provider is None


@pytest.mark.parametrize(
    ("path", "changes", "kept_input"),
    [
        ("openid", {"issuer": "http://plain.example"}, "http://plain.example"),
        ("openid", {"client_id": ""}, VALID_PROVIDER["issuer"]),
        ("openid", {"client_id": "x\0"}, VALID_PROVIDER["issuer"]),
        ("saml", {"metadata": "<no metadata"}, "&lt;no metadata"),
        ("saml", {"metadata_url": "ftp://x.example"}, "ftp://x.example"),
        ("saml", {}, ""),  # neither metadata nor their URL
    ],
)
def test_an_invalid_provider_configuration_gets_an_error_message_and_keeps_the_input(
    company: Company, client: Client, path: str, changes: dict[str, str], kept_input: str
) -> None:
    answer = client.post(f"/sign-in-settings/provider/{path}", VALID_PROVIDER | changes)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert 'class="wrong"' in page or 'role="alert"' in page
    assert kept_input in page
    assert find_sign_in_rules(company).provider is None


def test_changing_the_provider_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    new = OidcProviderConfig("https://login.example.com", "caret", "s3cret")
    set_provider(actor=company.platform, new=new, now=timezone.now())
    client = sign_in(company.people[Role.OWNER])

    for path in ("openid", "saml", "remove"):
        answer = client.post(f"/sign-in-settings/provider/{path}", VALID_PROVIDER)
        assert answer["Location"].startswith("/account/confirm")
    assert find_sign_in_rules(company).provider is not None


def test_a_scim_token_is_shown_once_and_revoked(company: Company, client: Client) -> None:
    form = {"token_name": "Okta", "form_token": find_form_token(client)}

    created = client.post("/sign-in-settings/scim", form)
    second_page = client.post("/sign-in-settings/scim", form, follow=True).content.decode()
    token_text, _scim_url = re.findall(
        r'<code class="whole">([^<]+)</code>', created.content.decode()
    )
    [token] = list_scim_tokens(actor=company.platform)
    names_before = list_token_names(company)
    client.post(f"/sign-in-settings/scim/{token.id}/revoke")

    assert created["Cache-Control"] == "no-store"
    assert token_text not in client.get("/sign-in-settings").content.decode()
    assert "We did not create a second token" in second_page
    assert names_before == ["Okta"]
    assert list_token_names(company) == []


def test_a_token_with_an_invalid_name_is_not_created(company: Company, client: Client) -> None:
    form = {"token_name": "a\x07b", "form_token": find_form_token(client)}

    answer = client.post("/sign-in-settings/scim", form)

    assert answer.status_code == 400
    assert list_token_names(company) == []


def test_the_page_runs_few_queries(company: Company, client: Client) -> None:
    for number in range(3):
        claim_domain(actor=company.platform, name=f"d{number}.example", now=timezone.now())

    with few_queries():
        page = client.get("/sign-in-settings").content.decode()

    assert "d2.example" in page


def test_the_role_of_a_group_is_shown_by_its_name(company: Company, sign_in: SignIn) -> None:
    now = timezone.now()
    team = create_team(actor=company.platform, name="Finance", now=now)
    with tenant_scope(company.tenant_id):
        ScimGroup.objects.create(
            tenant_id=company.tenant_id, team_id=team.id, created_at=now, changed_at=now
        )
    set_group_role(actor=company.platform, group_id=team.id, role=Role.BILLING, now=now)

    page = sign_in(company.administrator).get("/sign-in-settings").content.decode()

    assert re.findall(r'data-label="Role of its members">([^<]+)</td>', page) == ["Billing"]
