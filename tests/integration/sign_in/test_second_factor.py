"""Second factors: set up, asked for, wanted by a tenant; and the list of sessions."""

import secrets
import time
from dataclasses import dataclass

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenancy import tenant
from tenants.identity.operations import require_second_factor
from tenants.members.changes import remove_member
from tenants.members.operations import join
from tenants.members.permissions import Role
from tests.cast import PASSWORD, Company, Person, make_company
from tests.people import make_colleague


@dataclass
class Browser:
    client: Client
    person: Person

    def sign_in(self) -> str:
        """Where it leads."""
        form = {"email": self.person.email, "password": PASSWORD}
        response = self.client.post("/sign-in", form)
        return response["Location"] if response.status_code == 302 else str(response.status_code)

    def is_in(self) -> bool:
        return self.client.get("/api/v1/tenant").status_code == 200

    def set_up(self) -> str:
        """The secret of a new app. Asks for the password first."""
        self.client.get("/account/second-factor/app")
        self.client.post("/account/confirm", {"password": PASSWORD})
        page = self.client.get("/account/second-factor/app")
        secret = str(page.context["form"].secret)
        answer = self.client.post("/account/second-factor/app", {"code": code_of(secret)})
        assert answer.status_code == 302, answer.content
        return secret


def code_of(secret: str, *, later_by: int = 0) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30 + later_by)))


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def browser(company: Company) -> Browser:
    return new_browser(company.people[Role.OWNER])


def new_browser(person: Person) -> Browser:
    octets = ".".join(str(secrets.randbelow(250) + 1) for _ in range(3))
    return Browser(Client(REMOTE_ADDR=f"10.{octets}"), person)


def test_a_password_alone_is_not_enough_once_there_is_a_second_factor(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up()
    other = new_browser(browser.person)

    leads_to = other.sign_in()

    assert leads_to == "/sign-in/code"
    assert not other.is_in()


def test_the_code_lets_him_in(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up()
    other = new_browser(browser.person)
    other.sign_in()

    response = other.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response["Location"] == "/"
    assert other.is_in()


def test_a_code_lets_in_once(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up()
    code = code_of(secret, later_by=1)
    for number, expected in ((1, True), (2, False)):
        other = new_browser(browser.person)
        other.sign_in()
        other.client.post("/sign-in/code", {"code": code})
        assert other.is_in() is expected, number


def test_a_wrong_code_does_not(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up()
    other = new_browser(browser.person)
    other.sign_in()

    page = other.client.post("/sign-in/code", {"code": "000000"})

    assert b"Incorrect code" in page.content
    assert not other.is_in()


def test_guessing_codes_is_slowed_down(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up()
    other = new_browser(browser.person)
    other.sign_in()
    for _ in range(6):
        other.client.post("/sign-in/code", {"code": "000000"})

    other.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert not other.is_in()


def test_a_recovery_code_lets_in_once(browser: Browser) -> None:
    browser.sign_in()
    browser.set_up()
    code = browser.client.get("/account/recovery-codes").context["unused_codes"][0]
    for expected in (True, False):
        other = new_browser(browser.person)
        other.sign_in()
        other.client.post("/sign-in/code", {"code": code})
        assert other.is_in() is expected


def test_secrets_are_kept_sealed(browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up()

    rows = Authenticator.objects.filter(user_id=browser.person.user_id)

    assert rows.count() == 2
    assert not any(secret in str(row.data) for row in rows)


def test_setting_one_up_asks_for_the_password_first(browser: Browser) -> None:
    browser.sign_in()

    response = browser.client.get("/account/second-factor/app")

    assert response["Location"].startswith("/account/confirm")


def test_the_page_of_codes_is_of_no_use_without_the_password(browser: Browser) -> None:
    response = browser.client.get("/sign-in/code")

    assert response["Location"] == "/sign-in"


def want(company: Company, *, required: bool = True) -> None:
    require_second_factor(actor=company.platform, required=required, now=timezone.now())


def test_who_lacks_what_his_tenant_wants_can_do_nothing_but_set_it_up(
    company: Company, browser: Browser
) -> None:
    want(company)
    browser.sign_in()

    page, answer = browser.client.get("/"), browser.client.get("/api/v1/keys")

    assert page["Location"] == "/account/second-factor"
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")


def test_and_everything_once_he_has(company: Company, browser: Browser) -> None:
    want(company)
    browser.sign_in()

    browser.set_up()

    assert browser.is_in()
    assert browser.client.get("/").status_code == 200


def test_what_one_tenant_wants_is_not_wanted_of_the_neighbours(
    company: Company, browser: Browser
) -> None:
    want(make_company("hooli", {Role.OWNER: "hank"}))
    browser.sign_in()

    assert browser.is_in()


def test_signing_out_elsewhere_ends_the_other_sessions(browser: Browser) -> None:
    other = new_browser(browser.person)
    other.sign_in()
    browser.sign_in()
    listed = browser.client.get("/account/sessions")

    browser.client.post("/account/sessions")

    assert other.client.defaults["REMOTE_ADDR"].encode() in listed.content
    assert (browser.is_in(), other.is_in()) == (True, False)


def test_a_form_from_elsewhere_changes_no_second_factor(browser: Browser) -> None:
    browser.sign_in()
    browser.client.handler.enforce_csrf_checks = True

    for address in ("/account/second-factor/app", "/account/sessions", "/account/confirm"):
        assert browser.client.post(address, {"code": "1"}).status_code == 403


def test_who_is_removed_is_signed_out_everywhere(company: Company) -> None:
    make_colleague(company, Role.OWNER)
    removed = new_browser(company.people[Role.OWNER])
    removed.sign_in()

    remove_member(
        actor=company.platform, user_id=removed.person.user_id, reason="", now=timezone.now()
    )

    assert removed.client.get("/")["Location"] == "/sign-in?next=/"


def test_who_is_a_member_elsewhere_stays_signed_in_there(company: Company) -> None:
    make_colleague(company, Role.OWNER)
    elsewhere = make_company("hooli", {Role.OWNER: "hank"})
    removed = new_browser(company.people[Role.OWNER])
    with tenant(elsewhere.tenant_id):
        join(
            tenant_id=elsewhere.tenant_id,
            user_id=removed.person.user_id,
            role=Role.AUDITOR,
            now=timezone.now(),
        )
    removed.sign_in()

    remove_member(
        actor=company.platform, user_id=removed.person.user_id, reason="", now=timezone.now()
    )

    assert removed.client.get("/api/v1/tenant").json()["slug"] == elsewhere.slug
