"""Second factors: set up, asked for, required by a tenant; and the list of sessions."""

from contextlib import ExitStack

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.password_hashing import MAX_CHECKS, hashing_slot
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.members.operations import insert_membership
from tenants.identity.sso.operations import require_second_factor
from tenants.models import User
from tests.fixtures.companies import PASSWORD, Company, make_company
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.browser import Browser, code_of, new_browser


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def browser(company: Company) -> Browser:
    return new_browser(company.people[Role.OWNER])


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


def test_a_code_lets_in_once_for_as_long_as_it_is_valid(browser: Browser) -> None:
    browser.sign_in()
    code = code_of(browser.set_up(), later_by=1)
    first, second = new_browser(browser.person), new_browser(browser.person)
    first.sign_in()
    first.client.post("/sign-in/code", {"code": code})
    # django-allauth forgets a used code after 30 s of the 90 s for which it is valid.
    cache.delete(f"allauth.mfa.totp.used?user={browser.person.user_id}&code={code}")

    second.sign_in()
    second.client.post("/sign-in/code", {"code": code})

    assert (first.is_in(), second.is_in()) == (True, False)


def test_a_code_that_was_used_to_sign_in_confirms_nothing(browser: Browser) -> None:
    browser.sign_in()
    code = code_of(browser.set_up(), later_by=1)
    other = new_browser(browser.person)
    other.sign_in()
    other.client.post("/sign-in/code", {"code": code})
    cache.delete(f"allauth.mfa.totp.used?user={browser.person.user_id}&code={code}")

    page = other.client.post("/account/confirm/code?next=/", {"code": code})

    assert page.status_code == 200
    assert b"Incorrect code" in page.content


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


def test_while_all_places_for_checks_are_taken_one_is_told_to_try_again(browser: Browser) -> None:
    browser.sign_in()
    browser.client.get("/account/second-factor/app")
    with ExitStack() as others:
        for _ in range(MAX_CHECKS):
            others.enter_context(hashing_slot())
        refused = browser.client.post("/account/confirm?next=/account/x", {"password": PASSWORD})

    taken = browser.client.post("/account/confirm", {"password": PASSWORD})

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert b"Too many people are signing in" in refused.content
    assert b"/account/x" in refused.content
    assert PASSWORD.encode() not in refused.content
    assert taken.status_code == 302


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


def test_who_sets_one_up_ends_his_other_sessions(browser: Browser) -> None:
    other = new_browser(browser.person)
    other.sign_in()
    browser.sign_in()

    browser.set_up()

    assert (browser.is_in(), other.is_in()) == (True, False)


def test_the_neighbours_sessions_go_on(browser: Browser) -> None:
    neighbour = new_browser(make_company("hooli", {Role.OWNER: "hank"}).people[Role.OWNER])
    neighbour.sign_in()
    browser.sign_in()

    browser.set_up()

    assert neighbour.is_in()


def begun_before(browser: Browser) -> Browser:
    """Return a browser of the same user with an older session that was never asked for a code."""
    old = new_browser(browser.person)
    old.client.force_login(User.objects.get(id=browser.person.user_id))
    return old


def test_that_the_account_has_one_is_not_that_the_session_gave_it(
    company: Company, browser: Browser
) -> None:
    browser.sign_in()
    browser.set_up()
    old = begun_before(browser)
    want(company)

    page, answer = old.client.get("/"), old.client.get("/api/v1/keys")

    assert page["Location"] == "/account/confirm/code?next=%2F"
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")


def test_such_a_session_may_give_it_later(company: Company, browser: Browser) -> None:
    browser.sign_in()
    secret = browser.set_up()
    old = begun_before(browser)
    want(company)

    response = old.client.post(
        "/account/confirm/code?next=/", {"code": code_of(secret, later_by=1)}
    )

    assert response["Location"] == "/"
    assert old.is_in()


def test_what_was_given_counts_no_more_once_the_app_is_removed(
    company: Company, browser: Browser
) -> None:
    browser.sign_in()
    browser.set_up()
    want(company)

    browser.client.post("/account/second-factor/app/remove")

    assert not browser.is_in()
    assert browser.client.get("/")["Location"] == "/account/second-factor"


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
    with tenant_scope(elsewhere.tenant_id):
        insert_membership(
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
