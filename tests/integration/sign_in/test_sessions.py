"""The sign-in method of a session decides which tenants it opens.

A provider session begins with a sign-in through a tenant's identity provider, and opens only this
tenant. A session ends if its user's sign-in method changes. `company` has a verified domain and the
identity provider `provider`; `owner` is its owner.
"""

from dataclasses import replace
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.domains.operations import release_domain
from tenants.identity.domains.queries import list_domains
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.operations import insert_membership
from tenants.identity.members.sessions import delete_expired_sessions
from tenants.identity.sso.operations import remove_provider
from tenants.models import User
from tenants.security.authorization.directory import find_memberships
from tests.fixtures.companies import Company, Person, make_company
from tests.fixtures.users import Mailbox, make_domain, send_invitation
from tests.integration.sign_in.browser import Browser, code_of, new_browser
from tests.integration.sign_in.by_provider import configure_provider, fresh_client, sign_in_through
from tests.integration.sign_in.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider

PROVIDER_CREDENTIALS = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


@pytest.fixture
def company_without_provider() -> Company:
    """Make a company with a verified domain whose users sign in with passwords."""
    company = make_company("hooli", {Role.OWNER: "hank"})
    make_domain(company, f"{company.slug}.example", verified=True)
    return company


@pytest.fixture
def other_company(owner: Person) -> Company:
    """Make another company of which the owner is a member too."""
    return add_administrator(owner, make_company("globex", {Role.OWNER: "bob"}))


def add_administrator(person: Person, company: Company) -> Company:
    """Make the person an administrator of the company too, and return the company."""
    with tenant_scope(company.tenant_id):
        insert_membership(
            tenant_id=company.tenant_id,
            user_id=person.user_id,
            role=Role.ADMINISTRATOR,
            now=timezone.now(),
        )
    return company


def sign_in_owner(company: Company) -> Browser:
    """Return a browser in which the company's owner has signed in with a password."""
    browser = new_browser(company.people[Role.OWNER])
    assert browser.sign_in() == "/"
    return browser


def sign_in_by_provider(person: Person, provider: OpenIdProvider) -> Browser:
    client = fresh_client()
    assert sign_in_through(client, provider, person.email).status_code == 302
    return Browser(client, person)


def remaining_s(browser: Browser) -> float:
    """Return the seconds until the session expires."""
    row = Session.objects.get(session_key=browser.client.session.session_key)
    return (row.expire_date - timezone.now()).total_seconds()


def read_tenant_slug(browser: Browser) -> str:
    """Return the slug of the tenant that the session shows."""
    return str(browser.client.get("/api/v1/tenant").json()["slug"])


def test_a_provider_session_is_limited_to_its_tenant(
    company: Company, owner: Person, other_company: Company, provider: OpenIdProvider
) -> None:
    browser = sign_in_by_provider(owner, provider)

    switched = browser.client.post("/tenant", {"tenant": other_company.tenant_id})

    assert switched.status_code == 404
    assert read_tenant_slug(browser) == company.slug
    assert other_company.name.encode() not in browser.client.get("/").content


def test_a_provider_session_of_a_non_member_opens_no_tenant(
    company: Company, other_company: Company, provider: OpenIdProvider
) -> None:
    guest = other_company.people[Role.OWNER]
    address_in_companys_domain = f"guest@{company.slug}.example"
    User.objects.filter(id=guest.user_id).update(email=address_in_companys_domain)
    client = fresh_client()

    sign_in_through(client, provider, address_in_companys_domain)

    assert client.get("/api/v1/tenant").json()["code"] == "no_active_tenant"


def test_a_second_factor_does_not_extend_a_provider_session(
    company: Company, owner: Person, other_company: Company, provider: OpenIdProvider
) -> None:
    remove_provider(actor=company.platform, now=timezone.now())
    browser = sign_in_owner(company)
    secret = browser.set_up_app()
    configure_provider(company, provider)
    client = fresh_client()
    response = sign_in_through(client, provider, owner.email)

    client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response["Location"] == "/sign-in/code"
    assert read_tenant_slug(Browser(client, owner)) == company.slug
    assert client.post("/tenant", {"tenant": other_company.tenant_id}).status_code == 404


def test_an_earlier_session_does_not_extend_a_provider_session(
    company: Company,
    owner: Person,
    other_company: Company,
    provider: OpenIdProvider,
    company_without_provider: Company,
) -> None:
    browser = sign_in_owner(company_without_provider)

    sign_in_through(browser.client, provider, owner.email)

    assert read_tenant_slug(browser) == company.slug
    assert browser.client.post("/tenant", {"tenant": other_company.tenant_id}).status_code == 404


def test_a_password_session_opens_all_of_the_users_tenants(
    owner: Person, other_company: Company, company: Company, provider: OpenIdProvider
) -> None:
    browser = sign_in_by_provider(owner, provider)
    remove_provider(actor=company.platform, now=timezone.now())

    browser.sign_in()

    assert browser.client.post("/tenant", {"tenant": other_company.tenant_id}).status_code == 302
    assert read_tenant_slug(browser) == other_company.slug


def test_a_provider_session_cannot_accept_another_tenants_invitation(
    owner: Person, provider: OpenIdProvider, company_without_provider: Company
) -> None:
    browser, mailbox = sign_in_by_provider(owner, provider), Mailbox()
    send_invitation(company_without_provider, owner.email, mailbox=mailbox)
    page = browser.client.get(f"/invitation/{mailbox.last_token}", follow=True)

    response = browser.client.post("/invitation")

    assert b"another company" in page.content
    assert response.status_code == 400
    assert company_without_provider.slug not in [
        row.slug for row in find_memberships(user_id=owner.user_id)
    ]


@pytest.mark.parametrize(
    "address",
    [
        *("/account/second-factor", "/account/second-factor/app", "/account/confirm"),
        *("/account/second-factor/app/remove", "/account/recovery-codes", "/account/confirm/code"),
        *("/account/recovery-codes/new", "/account/recovery-codes/file"),
    ],
)
def test_a_provider_session_cannot_change_second_factors(
    owner: Person, provider: OpenIdProvider, address: str
) -> None:
    """A tenant's provider could otherwise remove a second factor that another tenant requires."""
    client = sign_in_by_provider(owner, provider).client

    assert client.get(address).status_code == 403
    assert client.post(address).status_code == 403


def test_configuring_a_provider_ends_sessions_of_its_domains_users(
    company_without_provider: Company, provider: OpenIdProvider
) -> None:
    browser = sign_in_owner(company_without_provider)

    configure_provider(company_without_provider, provider)

    assert not browser.is_signed_in()


def test_configuring_a_provider_keeps_sessions_of_a_domain_with_the_same_ending(
    company_without_provider: Company, provider: OpenIdProvider
) -> None:
    globex = make_company("globex", {Role.OWNER: "bob"})
    email = f"bob@not{company_without_provider.slug}.example"
    User.objects.filter(email=globex.people[Role.OWNER].email).update(email=email)
    globex.people[Role.OWNER] = replace(globex.people[Role.OWNER], email=email)
    other_users_browser = sign_in_owner(globex)

    configure_provider(company_without_provider, provider)

    assert other_users_browser.is_signed_in()


def test_changing_or_removing_a_provider_ends_its_sessions(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    browser_before_change = sign_in_by_provider(owner, provider)
    configure_provider(company, provider)
    browser_after_change = sign_in_by_provider(owner, provider)
    were_signed_in = (browser_before_change.is_signed_in(), browser_after_change.is_signed_in())

    remove_provider(actor=company.platform, now=timezone.now())

    assert were_signed_in == (False, True)
    assert not browser_after_change.is_signed_in()


def test_verifying_a_domain_ends_its_users_sessions(provider: OpenIdProvider) -> None:
    company = make_company("hooli", {Role.OWNER: "hank"})
    configure_provider(company, provider)
    browser = sign_in_owner(company)

    make_domain(company, f"{company.slug}.example", verified=True)

    assert not browser.is_signed_in()


def test_verifying_a_domain_without_a_provider_ends_no_session() -> None:
    company = make_company("hooli", {Role.OWNER: "hank"})
    browser = sign_in_owner(company)

    make_domain(company, f"{company.slug}.example", verified=True)

    assert browser.is_signed_in()


def test_releasing_a_domain_ends_its_provider_sessions(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    browser = sign_in_by_provider(owner, provider)
    (domain,) = list_domains(actor=company.platform)

    release_domain(actor=company.platform, domain_id=domain.id, now=timezone.now())

    assert not browser.is_signed_in()


def test_the_owner_who_configures_a_provider_keeps_their_session_for_an_hour(
    company_without_provider: Company, provider: OpenIdProvider
) -> None:
    browser = sign_in_owner(company_without_provider)
    other_browser = sign_in_owner(company_without_provider)

    set_up = browser.client.put(
        "/api/v1/sign-in-settings/provider",
        {"issuer": provider.issuer, **PROVIDER_CREDENTIALS},
        content_type="application/json",
    )

    assert set_up.status_code == 200
    assert (browser.is_signed_in(), other_browser.is_signed_in()) == (True, False)
    assert remaining_s(browser) <= 3600


def test_an_owner_outside_of_the_domain_keeps_their_session(provider: OpenIdProvider) -> None:
    company_outside_domain = make_company("hooli", {Role.OWNER: "hank"})
    browser = sign_in_owner(company_outside_domain)

    set_up = browser.client.put(
        "/api/v1/sign-in-settings/provider",
        {"issuer": provider.issuer, **PROVIDER_CREDENTIALS},
        content_type="application/json",
    )

    assert set_up.status_code == 200
    assert remaining_s(browser) > 3600


def test_an_owner_who_releases_a_domain_without_a_provider_keeps_their_session(
    company_without_provider: Company,
) -> None:
    browser = sign_in_owner(company_without_provider)
    (domain,) = list_domains(actor=company_without_provider.platform)

    released = browser.client.delete(f"/api/v1/domains/{domain.id}")

    assert released.status_code == 204
    assert remaining_s(browser) > 3600


def test_an_owner_who_releases_another_domain_keeps_their_session(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    domain_id = make_domain(company, verified=True)
    browser = sign_in_by_provider(owner, provider)

    released = browser.client.delete(f"/api/v1/domains/{domain_id}")

    assert released.status_code == 204
    assert remaining_s(browser) > 3600


def test_configuring_a_provider_ends_pending_sign_ins(
    company_without_provider: Company, provider: OpenIdProvider
) -> None:
    secret = sign_in_owner(company_without_provider).set_up_app()
    pending_browser = new_browser(company_without_provider.people[Role.OWNER])
    pending_browser.sign_in()
    configure_provider(company_without_provider, provider)

    response = pending_browser.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response["Location"] == "/sign-in"
    assert not pending_browser.is_signed_in()


@pytest.mark.parametrize("has_other_membership", [False, True])
def test_a_session_ends_with_the_last_membership_of_its_user(has_other_membership: bool) -> None:
    company = make_company("hooli", {Role.OWNER: "hank", Role.ADMINISTRATOR: "hilda"})
    if has_other_membership:
        add_administrator(company.administrator, make_company("globex", {Role.OWNER: "bob"}))
    browser = new_browser(company.administrator)
    assert browser.sign_in() == "/"
    session = Session.objects.filter(session_key=browser.client.session.session_key)
    assert session.exists()

    remove_member(
        actor=company.platform,
        user_id=company.administrator.user_id,
        reason="left",
        now=timezone.now(),
    )

    assert session.exists() is has_other_membership


def test_only_expired_sessions_are_deleted(company_without_provider: Company) -> None:
    expired_browser = sign_in_owner(company_without_provider)
    other_browser = sign_in_owner(company_without_provider)
    keys = [browser.client.session.session_key for browser in (expired_browser, other_browser)]
    now = timezone.now()
    Session.objects.filter(session_key=keys[0]).update(expire_date=now - timedelta(seconds=1))

    delete_expired_sessions(now=now)

    assert [Session.objects.filter(session_key=key).exists() for key in keys] == [False, True]
    assert [UserSession.objects.filter(session_key=key).exists() for key in keys] == [False, True]
    assert other_browser.is_signed_in()
