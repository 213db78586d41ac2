"""The tenants that a session opens, by its sign-in method, and its end when the method changes."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.domains.operations import release_domain
from tenants.identity.domains.queries import list_domains
from tenants.identity.members.operations import insert_membership
from tenants.identity.members.sessions import delete_expired_sessions
from tenants.identity.sso.operations import remove_provider
from tenants.models import User
from tenants.security.authorization.directory import find_memberships
from tests.fixtures.companies import Company, Person, make_company
from tests.fixtures.users import Mailbox, make_domain, send_invitation
from tests.integration.sign_in.browser import Browser, code_of, new_browser
from tests.integration.sign_in.by_provider import come_back, fresh_client, use
from tests.integration.sign_in.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider

PROVIDER = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}


@pytest.fixture
def without() -> Company:
    """Make a company with a verified domain whose users sign in with passwords."""
    made = make_company("hooli", {Role.OWNER: "hank"})
    make_domain(made, f"{made.slug}.example", verified=True)
    return made


@pytest.fixture
def elsewhere(owner: Person) -> Company:
    """Make another company of which the owner is a member too."""
    return joined(owner, make_company("globex", {Role.OWNER: "bob"}))


def joined(person: Person, company: Company) -> Company:
    with tenant_scope(company.tenant_id):
        insert_membership(
            tenant_id=company.tenant_id,
            user_id=person.user_id,
            role=Role.ADMINISTRATOR,
            now=timezone.now(),
        )
    return company


def signed_in(company: Company) -> Browser:
    browser = new_browser(company.people[Role.OWNER])
    assert browser.sign_in() == "/"
    return browser


def by_provider(person: Person, provider: OpenIdProvider) -> Browser:
    client = fresh_client()
    assert come_back(client, provider, person.email).status_code == 302
    return Browser(client, person)


def slug_of(browser: Browser) -> str:
    return str(browser.client.get("/api/v1/tenant").json()["slug"])


def test_a_session_of_a_providers_opens_its_own_tenant_only(
    company: Company, owner: Person, elsewhere: Company, provider: OpenIdProvider
) -> None:
    browser = by_provider(owner, provider)

    switched = browser.client.post("/tenant", {"tenant": elsewhere.tenant_id})

    assert switched.status_code == 404
    assert slug_of(browser) == company.slug
    assert elsewhere.name.encode() not in browser.client.get("/").content


def test_it_opens_nothing_to_who_is_a_member_elsewhere_only(
    company: Company, elsewhere: Company, provider: OpenIdProvider
) -> None:
    guest = elsewhere.people[Role.OWNER]
    taken_over = f"guest@{company.slug}.example"
    User.objects.filter(id=guest.user_id).update(email=taken_over)
    client = fresh_client()
    come_back(client, provider, taken_over)

    assert client.get("/api/v1/tenant").json()["code"] == "no_active_tenant"


def test_a_second_factor_on_the_way_does_not_make_it_more(
    company: Company, owner: Person, elsewhere: Company, provider: OpenIdProvider
) -> None:
    remove_provider(actor=company.platform, now=timezone.now())
    browser = signed_in(company)
    secret = browser.set_up()
    use(company, provider)
    client = fresh_client()
    asked = come_back(client, provider, owner.email)

    client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert asked["Location"] == "/sign-in/code"
    assert slug_of(Browser(client, owner)) == company.slug
    assert client.post("/tenant", {"tenant": elsewhere.tenant_id}).status_code == 404


def test_nor_does_who_was_signed_in_before_in_the_same_browser(
    company: Company, owner: Person, elsewhere: Company, provider: OpenIdProvider, without: Company
) -> None:
    browser = signed_in(without)

    come_back(browser.client, provider, owner.email)

    assert slug_of(browser) == company.slug
    assert browser.client.post("/tenant", {"tenant": elsewhere.tenant_id}).status_code == 404


def test_a_password_opens_all_of_ones_tenants_again(
    owner: Person, elsewhere: Company, company: Company, provider: OpenIdProvider
) -> None:
    browser = by_provider(owner, provider)
    remove_provider(actor=company.platform, now=timezone.now())

    browser.sign_in()

    assert browser.client.post("/tenant", {"tenant": elsewhere.tenant_id}).status_code == 302
    assert slug_of(browser) == elsewhere.slug


def test_it_accepts_no_invitation_of_another_tenant(
    owner: Person, provider: OpenIdProvider, without: Company
) -> None:
    browser, mailbox = by_provider(owner, provider), Mailbox()
    send_invitation(without, owner.email, mailbox=mailbox)
    page = browser.client.get(f"/invitation/{mailbox.last}", follow=True)

    answer = browser.client.post("/invitation")

    assert b"another company" in page.content
    assert answer.status_code == 400
    assert without.slug not in [row.slug for row in find_memberships(user_id=owner.user_id)]


@pytest.mark.parametrize(
    "address",
    [
        *("/account/second-factor", "/account/second-factor/app", "/account/confirm"),
        *("/account/second-factor/app/remove", "/account/recovery-codes", "/account/confirm/code"),
        *("/account/recovery-codes/new", "/account/recovery-codes/file"),
    ],
)
def test_it_changes_no_second_factor(owner: Person, provider: OpenIdProvider, address: str) -> None:
    """A tenant's provider could otherwise remove what another tenant requires."""
    client = by_provider(owner, provider).client

    assert client.get(address).status_code == 403
    assert client.post(address).status_code == 403


def test_a_provider_ends_the_sessions_of_those_whom_it_binds(
    without: Company, provider: OpenIdProvider
) -> None:
    bound = signed_in(without)

    use(without, provider)

    assert not bound.is_in()


def test_and_nobody_elses(without: Company, provider: OpenIdProvider) -> None:
    neighbour = signed_in(make_company("globex", {Role.OWNER: "bob"}))

    use(without, provider)

    assert neighbour.is_in()


def test_a_provider_that_is_changed_or_removed_ends_what_it_began(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    before_the_change = by_provider(owner, provider)
    use(company, provider)
    after = by_provider(owner, provider)
    was_in = (before_the_change.is_in(), after.is_in())

    remove_provider(actor=company.platform, now=timezone.now())

    assert was_in == (False, True)
    assert not after.is_in()


def test_a_domain_that_is_verified_ends_its_peoples_sessions(provider: OpenIdProvider) -> None:
    late = make_company("hooli", {Role.OWNER: "hank"})
    use(late, provider)
    browser = signed_in(late)

    make_domain(late, f"{late.slug}.example", verified=True)

    assert not browser.is_in()


def test_a_domain_of_a_tenant_without_a_provider_ends_none() -> None:
    late = make_company("hooli", {Role.OWNER: "hank"})
    browser = signed_in(late)

    make_domain(late, f"{late.slug}.example", verified=True)

    assert browser.is_in()


def test_a_domain_that_is_given_up_ends_what_its_provider_began(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    browser = by_provider(owner, provider)
    (domain,) = list_domains(actor=company.platform)

    release_domain(actor=company.platform, domain_id=domain.id, now=timezone.now())

    assert not browser.is_in()


def test_who_makes_the_change_has_an_hour_to_mend_it(
    without: Company, provider: OpenIdProvider
) -> None:
    browser, other = signed_in(without), signed_in(without)

    set_up = browser.client.put(
        "/api/v1/sign-in/provider",
        {"issuer": provider.issuer, **PROVIDER},
        content_type="application/json",
    )

    assert set_up.status_code == 200
    assert (browser.is_in(), other.is_in()) == (True, False)
    row = Session.objects.get(session_key=browser.client.session.session_key)
    assert (row.expire_date - timezone.now()).total_seconds() <= 3600


def test_who_is_not_bound_by_it_keeps_his_session(provider: OpenIdProvider) -> None:
    unbound = make_company("hooli", {Role.OWNER: "hank"})
    browser = signed_in(unbound)

    browser.client.put(
        "/api/v1/sign-in/provider",
        {"issuer": provider.issuer, **PROVIDER},
        content_type="application/json",
    )

    row = Session.objects.get(session_key=browser.client.session.session_key)
    assert (row.expire_date - timezone.now()).total_seconds() > 3600


def test_a_sign_in_that_waits_for_its_code_meanwhile_is_worth_nothing(
    without: Company, provider: OpenIdProvider
) -> None:
    secret = signed_in(without).set_up()
    waiting = new_browser(without.people[Role.OWNER])
    waiting.sign_in()
    use(without, provider)

    answer = waiting.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert answer["Location"] == "/sign-in"
    assert not waiting.is_in()


def test_what_has_expired_is_forgotten_and_nothing_else(without: Company) -> None:
    expired, other = signed_in(without), signed_in(without)
    keys = [browser.client.session.session_key for browser in (expired, other)]
    now = timezone.now()
    Session.objects.filter(session_key=keys[0]).update(expire_date=now - timedelta(seconds=1))

    delete_expired_sessions(now=now)

    assert [Session.objects.filter(session_key=key).exists() for key in keys] == [False, True]
    assert [UserSession.objects.filter(session_key=key).exists() for key in keys] == [False, True]
    assert other.is_in()
