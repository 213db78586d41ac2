"""Setting a new password with a link from an e-mail."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.core import mail
from django.db import connections
from django.utils import timezone

from tenants.base.errors import NotFound
from tenants.base.permissions import Role
from tenants.identity.passwords import reset_links
from tenants.identity.passwords.operations import reset_password
from tenants.identity.passwords.reset_links import ResetLink
from tenants.models import User
from tests.fixtures.companies import PASSWORD, Company, Person, make_company
from tests.integration.sign_in.browser import code_of, new_browser
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.passwords import (
    NEW_PASSWORD,
    can_sign_in,
    find_user_row,
    is_unusable,
    keep_mails_in_memory,
    list_password_entries,
    mailed_link,
    open_link,
    post_password_change,
    signed_in,
)
from tests.integration.sign_in.test_throttle import spend_attempts


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    keep_mails_in_memory(settings)


def test_a_link_sets_a_new_password(companies: list[Company], olga: Person) -> None:
    client = open_link(mailed_link(olga))

    response = client.post("/reset-password", {"password": NEW_PASSWORD})

    assert response["Location"] == "/sign-in"
    assert b"Sign in with the new one." in client.get("/sign-in").content
    assert can_sign_in(olga, NEW_PASSWORD)
    assert not can_sign_in(olga, PASSWORD)
    for company in companies:
        (entry,) = list_password_entries(company)
        assert (entry.action, entry.target) == ("password.reset", f"user:{olga.user_id}")
    assert mail.outbox[-1].subject == "Your password was reset"


def test_a_reset_ends_all_sessions_and_starts_none(olga: Person) -> None:
    resetting_browser, other_browser = signed_in(olga), signed_in(olga)
    resetting_browser.client.get(mailed_link(olga))

    response = resetting_browser.client.post("/reset-password", {"password": NEW_PASSWORD})

    assert response["Location"] == "/sign-in"
    assert not resetting_browser.is_signed_in()
    assert not other_browser.is_signed_in()
    assert not UserSession.objects.filter(user_id=olga.user_id).exists()


def test_a_reset_keeps_the_second_factor(olga: Person) -> None:
    browser = signed_in(olga)
    browser.set_up_app()
    open_link(mailed_link(olga)).post("/reset-password", {"password": NEW_PASSWORD})

    response = fresh_client().post("/sign-in", {"email": olga.email, "password": NEW_PASSWORD})

    assert response["Location"] == "/sign-in/code"


def test_a_reset_ends_a_sign_in_that_waits_for_its_second_factor(olga: Person) -> None:
    secret = signed_in(olga).set_up_app()
    thief = new_browser(olga)
    assert thief.sign_in() == "/sign-in/code"
    open_link(mailed_link(olga)).post("/reset-password", {"password": NEW_PASSWORD})

    response = thief.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response["Location"] == "/sign-in"
    assert not thief.is_signed_in()


def test_the_page_does_not_reveal_the_token(olga: Person) -> None:
    path = mailed_link(olga)

    page = open_link(path).get("/reset-password")

    assert olga.email.encode() in page.content
    assert path.rpartition("/")[2].encode() not in page.content
    # The browser does not tell other sites the address of the page.
    assert page["Referrer-Policy"] in ("same-origin", "no-referrer")


def test_a_link_works_once(olga: Person) -> None:
    path = mailed_link(olga)
    first, second = open_link(path), open_link(path)
    first.post("/reset-password", {"password": NEW_PASSWORD})

    second_use = second.post("/reset-password", {"password": "another long one"})

    assert second_use.status_code == 404
    assert b"This link was already used" in second_use.content
    assert is_unusable(path)
    assert can_sign_in(olga, NEW_PASSWORD)


def test_only_one_of_four_concurrent_uses_of_a_link_succeeds(olga: Person) -> None:
    link = ResetLink.for_user(find_user_row(olga))

    def try_reset(number: int) -> bool:
        try:
            reset_password(
                link=link,
                password=f"{NEW_PASSWORD} {number}",
                address="10.0.0.1",
                now=timezone.now(),
            )
        except NotFound:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(4) as threads:
        num_successes = sum(threads.map(try_reset, range(4)))

    assert num_successes == 1


def test_a_link_expires_after_an_hour(olga: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mailed_link(olga)
    tokens = reset_links._TOKENS
    now = tokens._now()

    monkeypatch.setattr(tokens, "_now", lambda: now + timedelta(minutes=59))
    client = open_link(path)
    monkeypatch.setattr(tokens, "_now", lambda: now + timedelta(minutes=61))

    assert is_unusable(path)
    assert client.post("/reset-password", {"password": NEW_PASSWORD}).status_code == 404
    assert not can_sign_in(olga, NEW_PASSWORD)


def test_a_tampered_link_does_not_work(companies: list[Company], olga: Person) -> None:
    path = mailed_link(olga)  # /reset-password/<user ID>/<timestamp>-<digest>
    start, _, token = path.rpartition("/")
    timestamp, _, digest = token.partition("-")
    other_owner = make_company("globex", {Role.OWNER: "gina"}).people[Role.OWNER]
    other_last_digit = "0" if timestamp[-1] != "0" else "1"
    tampered = [
        f"{start}/{timestamp}-{'0' * len(digest)}",
        f"{start}/{timestamp[:-1]}{other_last_digit}-{digest}",
        f"{start}/{'z' * 5_000}-{digest}",
        f"{start}/%00",
        f"{start}/-",
        path.replace(olga.user_id, other_owner.user_id),
        path.replace(olga.user_id, "00000000-0000-0000-0000-000000000000"),
    ]

    assert [link for link in tampered if not is_unusable(link)] == []
    assert not is_unusable(path)
    # A browser that has opened no link cannot set a password.
    assert fresh_client().post("/reset-password", {"password": NEW_PASSWORD}).status_code == 404


def test_a_link_of_a_deactivated_user_does_not_work(olga: Person) -> None:
    path = mailed_link(olga)
    User.objects.filter(id=olga.user_id).update(is_active=False)

    assert is_unusable(path)


def test_a_link_does_not_work_after_the_address_changed(olga: Person) -> None:
    path = mailed_link(olga)
    User.objects.filter(id=olga.user_id).update(email=f"{secrets.token_hex(4)}@new.example")

    assert is_unusable(path)


def test_a_sign_in_with_the_old_password_does_not_invalidate_a_link(olga: Person) -> None:
    path = mailed_link(olga)

    signed_in(olga)

    assert not is_unusable(path)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("short", "at least 12 characters"),
        ("qwerty123456", "easy to guess"),
        ("x\0" * 12, "Null characters are not allowed."),
        ("x" * 10_240, "at most 256 characters"),
        ("", "This field is required."),
    ],
    ids=["short", "common", "null", "long", "empty"],
)
def test_a_refused_password_leaves_the_link_usable(olga: Person, new: str, message: str) -> None:
    client = open_link(mailed_link(olga))

    response = client.post("/reset-password", {"password": new})

    assert response.status_code == 400
    assert message in response.content.decode()
    assert client.post("/reset-password", {"password": NEW_PASSWORD}).status_code == 302


def test_a_new_password_makes_known_browsers_unknown(olga: Person) -> None:
    """A browser that signed in before is known and has its own limit of guesses.

    A thief's browser must lose this limit.
    """
    thief = signed_in(olga)
    thief.client.post("/sign-out")
    thief.client.defaults["REMOTE_ADDR"] = "10.200.0.9"  # not the known network of the sign-in
    (device_cookie,) = [name for name in thief.client.cookies if "caret-device-" in name]
    assert thief.client.cookies[device_cookie].value  # signing out has not deleted it
    open_link(mailed_link(olga)).post("/reset-password", {"password": NEW_PASSWORD})
    spend_attempts(olga.email)

    response = thief.client.post("/sign-in", {"email": olga.email, "password": NEW_PASSWORD})

    assert response.status_code == 429


def test_the_browser_that_changed_the_password_stays_known(olga: Person) -> None:
    browser = signed_in(olga)
    post_password_change(browser.client)
    browser.client.post("/sign-out")
    browser.client.defaults["REMOTE_ADDR"] = "10.200.0.10"  # not the known network of the sign-in
    spend_attempts(olga.email)

    response = browser.client.post("/sign-in", {"email": olga.email, "password": NEW_PASSWORD})

    assert response.status_code == 302
