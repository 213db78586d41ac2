"""Changing the password on the account page."""

from contextlib import ExitStack
from itertools import pairwise

import pytest
from allauth.usersessions.models import UserSession
from django.conf import LazySettings
from django.core import mail
from django.http import HttpRequest
from django.utils import timezone

from console.limits.password_hashing import MAX_HASHES, check_password, hashing_slot
from console.limits.throttling import MAX_ATTEMPTS, MAX_PASSWORD_CHANGES, MAX_WAIT_S, Secret
from tenants.identity.passwords.operations import reset_password
from tenants.identity.passwords.reset_links import ResetLink
from tenants.models import User
from tests.fakes.console_client import Client
from tests.fixtures.companies import PASSWORD, Company, Person
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.passwords import (
    NEW_PASSWORD,
    can_sign_in,
    find_user_row,
    keep_mails_in_memory,
    list_password_entries,
    post_password_change,
    signed_in,
)
from tests.stack.django_setup import CheapPasswordHasher


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    keep_mails_in_memory(settings)


def test_a_changed_password_replaces_the_old_one(olga: Person) -> None:
    browser = signed_in(olga)

    response = post_password_change(browser.client)

    assert response["Location"] == "/account/password"
    assert browser.is_signed_in()
    assert b"Your other sessions have ended." in browser.client.get("/account/password").content
    assert can_sign_in(olga, NEW_PASSWORD)
    assert not can_sign_in(olga, PASSWORD)


def test_a_change_ends_the_other_sessions_and_gives_this_one_a_new_token(olga: Person) -> None:
    browser, other_browser = signed_in(olga), signed_in(olga)
    token_before = browser.client.cookies["caret-session"].value

    post_password_change(browser.client)

    token_after = browser.client.cookies["caret-session"].value
    assert token_before != token_after
    # Checked first, because the requests below would also remove an ended session.
    assert UserSession.objects.filter(user_id=olga.user_id).count() == 1
    sessions = browser.client.get("/account/sessions").content
    assert (sessions.count(b"this session"), sessions.count(b"<li>")) == (1, 1)  # no other one
    assert not other_browser.is_signed_in()
    client_with_old_token = fresh_client()
    client_with_old_token.cookies["caret-session"] = token_before
    assert client_with_old_token.get("/api/v1/tenant").status_code == 401


def _outdate_hash(person: Person) -> str:
    """Store a hash of the password with a cost other than the current one, and return the hash."""
    hasher = CheapPasswordHasher()
    hasher.time_cost += 1
    outdated_hash = hasher.encode(PASSWORD, salt="saltsaltsalt")
    User.objects.filter(id=person.user_id).update(password=outdated_hash)
    return outdated_hash


def test_a_sign_in_replaces_an_outdated_hash(olga: Person) -> None:
    outdated_hash = _outdate_hash(olga)

    browser = signed_in(olga)

    assert find_user_row(olga).password != outdated_hash
    assert browser.is_signed_in()
    assert can_sign_in(olga, PASSWORD)


def test_a_step_up_keeps_an_outdated_hash_and_the_session(olga: Person) -> None:
    """A step-up asks a signed-in user for the password again. A new hash would end the session."""
    outdated_hash = _outdate_hash(olga)
    client = fresh_client()
    client.force_login(find_user_row(olga), backend="django.contrib.auth.backends.ModelBackend")

    response = client.post("/account/confirm", {"password": PASSWORD})

    assert response.status_code == 302
    assert find_user_row(olga).password == outdated_hash
    assert client.get("/account/password").status_code == 200


def test_a_change_is_audited_in_each_of_the_users_tenants_and_mailed_to_the_user(
    companies: list[Company], olga: Person
) -> None:
    post_password_change(signed_in(olga).client)

    for company in companies:
        (entry,) = list_password_entries(company)
        assert (entry.action, str(entry.actor_id)) == ("password.changed", olga.user_id)
        assert (entry.target, entry.before, entry.after) == (f"user:{olga.user_id}", None, None)
    (message,) = mail.outbox
    assert (message.to, message.subject) == ([olga.email], "Your password was changed")
    assert "/forgot-password" in message.body


@pytest.mark.parametrize(
    ("current", "new", "message"),
    [
        ("not the current one", NEW_PASSWORD, "This is not your current password."),
        (PASSWORD, PASSWORD, "The new password is your current one."),
        (PASSWORD, "short", "at least 12 characters"),
        (PASSWORD, "Password2026!", "easy to guess"),
        (PASSWORD, "x\0" * 12, "Null characters are not allowed."),
        (PASSWORD, "x" * 10_240, "at most 256 characters"),
        ("\0" * 12, NEW_PASSWORD, "Null characters are not allowed."),
        ("x" * 10_240, NEW_PASSWORD, "at most 256 characters"),
    ],
    ids=[
        *("wrong", "unchanged", "short", "common", "null", "long"),
        *("null in the current one", "long current one"),
    ],
)
def test_a_refused_change_changes_nothing(
    companies: list[Company], olga: Person, current: str, new: str, message: str
) -> None:
    browser, other_browser = signed_in(olga), signed_in(olga)
    hash_before = find_user_row(olga).password

    response = post_password_change(browser.client, new, current)

    assert response.status_code == 400
    assert message in response.content.decode()
    assert find_user_row(olga).password == hash_before
    assert other_browser.is_signed_in()
    assert list_password_entries(companies[0]) == []
    assert mail.outbox == []


def test_guesses_at_the_current_password_are_throttled(olga: Person) -> None:
    client = signed_in(olga).client
    statuses = [
        post_password_change(client, current="a wrong password").status_code
        for _ in range(MAX_ATTEMPTS[Secret.STEP_UP_PASSWORD])
    ]

    response = post_password_change(client)

    assert set(statuses) == {400}
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= MAX_WAIT_S


def test_the_number_of_password_changes_is_limited(olga: Person) -> None:
    client = signed_in(olga).client
    passwords = [
        PASSWORD,
        *(f"{NEW_PASSWORD} {number}" for number in range(MAX_PASSWORD_CHANGES + 1)),
    ]

    *changes, refusal = [post_password_change(client, new, old) for old, new in pairwise(passwords)]

    assert {change.status_code for change in changes} == {302}
    assert refusal.status_code == 429
    assert 0 < int(refusal["Retry-After"]) <= MAX_WAIT_S
    assert can_sign_in(olga, passwords[-2])


def test_a_change_does_not_overwrite_a_reset_that_came_first(
    olga: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(olga).client
    link = ResetLink.for_user(find_user_row(olga))

    def check_then_reset(request: HttpRequest, *, email: str, password: str) -> User | None:
        user = check_password(request, email=email, password=password)
        reset_password(link=link, password=NEW_PASSWORD, address="10.0.0.1", now=timezone.now())
        return user

    monkeypatch.setattr("console.views.account.password.check_password", check_then_reset)

    response = post_password_change(client, "the thief's new password")

    assert response.status_code == 409
    assert b"Your password was changed in the meantime." in response.content
    assert can_sign_in(olga, NEW_PASSWORD)


def test_a_change_is_refused_while_all_hashing_slots_are_in_use(
    olga: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.limits.password_hashing.MAX_WAIT_S", 0.01)
    client = signed_in(olga).client

    with ExitStack() as held_slots:
        for _ in range(MAX_HASHES):
            held_slots.enter_context(hashing_slot())
        response = post_password_change(client)

    assert response.status_code == 503
    assert "Retry-After" in response
    assert post_password_change(client).status_code == 302


def test_a_form_from_another_site_is_refused(olga: Person) -> None:
    client = Client(enforce_csrf_checks=True, REMOTE_ADDR="10.7.7.7")
    client.cookies = signed_in(olga).client.cookies

    for path in ("/account/password", "/forgot-password", "/reset-password"):
        response = client.post(path, {"current_password": PASSWORD, "password": NEW_PASSWORD})
        assert response.status_code == 403, path
