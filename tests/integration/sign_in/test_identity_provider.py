"""Users sign in with their tenant's OpenID provider, but only with addresses of its domains."""

import secrets

import pytest
from django.test import override_settings
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.throttling import MAX_ATTEMPTS, Secret
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.sso.operations import OidcProviderConfig, remove_provider, set_provider
from tenants.identity.sso.queries import get_rules
from tenants.models import AuditEntry, IdentityProvider
from tenants.security.authorization.directory import find_user
from tests.fixtures.companies import PASSWORD, Cast, Company, Person, make_company
from tests.fixtures.users import Mailbox, make_colleague, make_domain, send_invitation
from tests.integration.sign_in.by_provider import (
    configure_provider,
    fresh_client,
    is_signed_in,
    provider_url,
    sign_in_through,
)
from tests.integration.sign_in.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    new_key,
)


def test_a_member_signs_in_through_the_provider(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    client = fresh_client()

    response = sign_in_through(client, provider, owner.email)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get("/api/v1/tenant").json()["slug"] == company.slug


def test_signing_in_redirects_only_to_pages_of_the_console(
    owner: Person, provider: OpenIdProvider
) -> None:
    locations = []
    for target in ("/keys/new", "https://evil.example/", "//evil.example"):
        client = fresh_client()
        redirect_url = provider.authorize(provider_url(client, owner.email, next=target))
        provider.claims = {"email": owner.email}
        locations.append(client.get(redirect_url)["Location"])

    assert locations == ["/keys/new", "/", "/"]


def test_a_correct_password_is_refused_if_there_is_a_provider(
    owner: Person, company: Company
) -> None:
    client = fresh_client()

    response = client.post("/sign-in", {"email": owner.email, "password": PASSWORD})

    assert b"Continue to your identity provider" in response.content
    assert not is_signed_in(client)


def test_guessed_passwords_do_not_block_the_provider_sign_in(owner: Person) -> None:
    for _ in range(MAX_ATTEMPTS[Secret.PASSWORD] + 1):
        page = fresh_client().post("/sign-in", {"email": owner.email, "password": "guess"})

    assert page.status_code == 200
    assert b"Continue to your identity provider" in page.content


def test_passwords_work_again_without_the_provider(owner: Person, company: Company) -> None:
    remove_provider(actor=company.platform, now=timezone.now())

    response = fresh_client().post("/sign-in", {"email": owner.email, "password": PASSWORD})

    assert response.status_code == 302


def test_a_provider_without_a_verified_domain_does_not_replace_passwords(
    provider: OpenIdProvider,
) -> None:
    other_company = make_company("hooli", {Role.OWNER: "hank"})
    make_domain(other_company, f"{other_company.slug}.example")
    configure_provider(other_company, provider)
    client = fresh_client()

    response = client.post(
        "/sign-in", {"email": other_company.people[Role.OWNER].email, "password": PASSWORD}
    )

    assert response.status_code == 302


def test_an_address_of_an_unverified_domain_is_refused(
    company: Company, owner: Person, cast: Cast, provider: OpenIdProvider
) -> None:
    client, victim = fresh_client(), cast.globex.administrator
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": victim.email}

    response = client.get(redirect_url)

    assert response.status_code == 403
    assert b"is not allowed to sign in users of this e-mail domain" in response.content
    assert not is_signed_in(client)


def test_an_address_of_another_tenants_domain_is_refused(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    victim = make_company("hooli", {Role.OWNER: "hank"})
    make_domain(victim, f"{victim.slug}.example", verified=True)
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": victim.people[Role.OWNER].email}

    assert client.get(redirect_url).status_code == 403
    assert not is_signed_in(client)


@pytest.mark.parametrize("verified", [True, "true"])
def test_an_address_verified_by_the_provider_is_accepted(
    owner: Person, provider: OpenIdProvider, verified: object
) -> None:
    client = fresh_client()

    sign_in_through(client, provider, owner.email, email_verified=verified)

    assert is_signed_in(client)


@pytest.mark.parametrize(
    "claims",
    [
        {"email_verified": False},
        {"email_verified": "false"},
        {"email_verified": None},
        {"email_verified": 0},
        {"email_verified": 1},
        {"email_verified": "True"},
        {"email_verified": [True]},
        {"email": ""},
        {"email": None},
        {"aud": "somebody else"},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000_000},
    ],
)
def test_an_invalid_token_is_refused(
    owner: Person, provider: OpenIdProvider, claims: dict[str, object]
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": owner.email, **claims}

    response = client.get(redirect_url)

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_token_signed_with_another_key_is_refused(
    owner: Person, provider: OpenIdProvider
) -> None:
    client = fresh_client()
    provider.signing_key = new_key()

    response = sign_in_through(client, provider, owner.email)

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_redirect_of_another_browsers_sign_in_is_refused(
    owner: Person, provider: OpenIdProvider
) -> None:
    """Login CSRF: the attacker signs in at the provider and makes the victim open the redirect."""
    attacker, victim = fresh_client(), fresh_client()
    redirect_url = provider.authorize(provider_url(attacker, owner.email))
    provider.claims = {"email": owner.email}

    victim.get(redirect_url)

    assert not is_signed_in(victim)


def test_a_redirect_of_the_provider_works_once(owner: Person, provider: OpenIdProvider) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": owner.email}
    client.get(redirect_url)
    assert is_signed_in(client)
    client.post("/sign-out")

    client.get(redirect_url)

    assert not is_signed_in(client)


def test_an_unknown_provider_is_not_found() -> None:
    for name in ("nonsense", "00000000-0000-0000-0000-000000000000"):
        assert fresh_client().get(f"/sign-in/provider/{name}?code=x&state=y").status_code == 404


def test_a_new_user_gets_an_account_without_membership(
    company: Company, provider: OpenIdProvider
) -> None:
    email, client = f"{secrets.token_hex(4)}@{company.slug}.example", fresh_client()

    sign_in_through(client, provider, email, name="Nina")

    assert find_user(email=email) is not None
    assert client.get("/api/v1/tenant").json()["code"] == "no_active_tenant"


def test_an_invited_user_signs_in_through_the_provider_and_joins(
    company: Company, provider: OpenIdProvider
) -> None:
    email, client, mailbox = f"new@{company.slug}.example", fresh_client(), Mailbox()
    send_invitation(company, email, mailbox=mailbox)
    invitation_page = client.get(f"/invitation/{mailbox.last_token}", follow=True)
    with_password = client.post("/invitation", {"name": "x", "password": PASSWORD})
    sign_in_through(client, provider, email)
    client.get(f"/invitation/{mailbox.last_token}")

    client.post("/invitation")

    assert b"Sign in to join" in invitation_page.content
    assert with_password.status_code == 400
    assert client.get("/api/v1/tenant").json()["slug"] == company.slug


def test_an_issuer_in_an_internal_network_is_not_contacted(owner: Person, company: Company) -> None:
    with override_settings(PRIVATE_TARGETS=[]):
        response = fresh_client().post("/sign-in", {"email": owner.email, "single": "yes"})

    assert response.status_code == 503
    assert b"does not respond" in response.content


def test_a_user_without_a_provider_is_told_to_use_their_password(cast: Cast) -> None:
    email = cast.globex.administrator.email

    response = fresh_client().post("/sign-in", {"email": email, "single": "yes"})

    assert response.status_code == 400
    assert b"Use your password" in response.content


def test_an_administrator_cannot_configure_a_provider(
    company: Company, provider: OpenIdProvider
) -> None:
    """An administrator's own provider could sign in the administrator as the owner."""
    alice = make_colleague(company, Role.ADMINISTRATOR)

    with pytest.raises(Forbidden, match=r"sign_in_settings\.write"):
        set_provider(
            actor=alice.actor,
            new=OidcProviderConfig(provider.issuer, CLIENT_ID, CLIENT_SECRET),
            now=timezone.now(),
        )


@pytest.mark.parametrize("issuer", ["http://x.example", "https://", "https://u:p@x.example"])
def test_an_issuer_must_be_an_https_url(company: Company, issuer: str) -> None:
    with override_settings(PRIVATE_TARGETS=[]), pytest.raises(InvalidValue) as exc_info:
        set_provider(
            actor=company.platform, new=OidcProviderConfig(issuer, "a", "b"), now=timezone.now()
        )

    assert exc_info.value.field == "issuer"


def test_the_client_secret_is_sealed_and_never_shown(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        row = str(bytes(IdentityProvider.objects.get().sealed_secret))
        entries = [str(vars(entry)) for entry in AuditEntry.objects.all()]

    assert CLIENT_SECRET not in row
    assert not any(CLIENT_SECRET in entry for entry in entries)
    assert CLIENT_SECRET not in str(get_rules(actor=company.platform))


def test_another_tenant_does_not_see_the_provider(company: Company, cast: Cast) -> None:
    assert get_rules(actor=cast.globex.platform).provider is None
