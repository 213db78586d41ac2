"""Operators sign in with a handle, a password and a code of an authenticator app."""

import os
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from console.limits.password_hashing import MAX_HASHES, hashing_slot
from console.limits.throttling import MAX_ATTEMPTS, MAX_TRIES, Secret, SecretAttempt, count_attempt
from console.sign_in.sessions.operator_cookies import cookie_names
from tenants.base.permissions import Role
from tenants.fleet.operators.accounts import disable_operator, reset_operator
from tenants.models import Operator, User
from tests.fakes.console_client import Client
from tests.fixtures.companies import PASSWORD, Cast
from tests.integration.operators.browsers import (
    OPERATOR_SESSION_COOKIE,
    make_account,
    new_browser,
    signed_in,
)

ROOT = Path(__file__).resolve().parents[3]


def test_an_operator_signs_in_with_password_and_code() -> None:
    browser = new_browser()

    response = browser.sign_in(make_account().form())

    assert response["Location"] == "/operators/"
    assert browser.is_signed_in()


@pytest.mark.parametrize(
    "wrong_fields",
    [
        {"code": ""},
        {"code": "000000"},
        {"code": "١٢٣٤٥٦"},  # Arabic digits
        {"password": "wrong"},
        {"password": "x" * 300},
        {"handle": "nobody"},
        {"handle": "no\0body"},
    ],
)
def test_a_wrong_handle_password_or_code_is_refused(wrong_fields: dict[str, str]) -> None:
    browser = new_browser()

    response = browser.sign_in(make_account().form(**wrong_fields))

    assert response.status_code == 400
    assert "The handle, password or code is wrong." in response.content.decode()
    assert not browser.is_signed_in()


def test_a_form_that_is_not_in_utf_8_is_refused() -> None:
    # In this charset, the handle is a lone surrogate, which UTF-8 cannot represent.
    body = b'--b\r\nContent-Disposition: form-data; name="handle"\r\n\r\n\\ud800\r\n--b--\r\n'
    content_type = "multipart/form-data; boundary=b; charset=unicode_escape"

    response = new_browser().client.generic("POST", "/operators/sign-in", body, content_type)

    assert response.status_code == 400


def test_a_code_can_be_used_once() -> None:
    account = make_account()
    form = account.form()
    new_browser().sign_in(form)
    thief = new_browser()

    response = thief.sign_in(form)
    later_response = thief.sign_in(form | {"code": account.code(later_by=1)})

    assert response.status_code == 400
    assert later_response.status_code == 302


def test_guessing_is_throttled() -> None:
    account, browser = make_account(), new_browser()
    for _ in range(MAX_TRIES):
        browser.sign_in(account.form(code="000000"))

    response = browser.sign_in(account.form())

    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 60


def test_attempts_while_all_hashing_slots_are_in_use_do_not_count() -> None:
    account, browser = make_account(), new_browser()
    with ExitStack() as held_slots:
        for _ in range(MAX_HASHES):
            held_slots.enter_context(hashing_slot())
        for _ in range(MAX_TRIES):
            assert browser.sign_in(account.form()).status_code == 503

    assert browser.sign_in(account.form()).status_code == 302


def test_guesses_at_the_consoles_sign_in_page_do_not_throttle_an_operator() -> None:
    account = make_account()
    for number in range(MAX_ATTEMPTS[Secret.PASSWORD]):
        client = Client(REMOTE_ADDR=f"10.202.0.{number}")
        client.post("/sign-in", {"email": f"operator:{account.handle}", "password": "x"})

    assert new_browser().sign_in(account.form()).status_code == 302


def test_guessing_does_not_lock_an_operator_out_of_a_known_browser() -> None:
    account, browser = make_account(), new_browser()
    browser.sign_in(account.form())
    browser.client.post("/operators/sign-out")
    browser.client.defaults["REMOTE_ADDR"] = "10.203.0.1"
    for number in range(MAX_ATTEMPTS[Secret.OPERATOR_PASSWORD]):
        guess = SecretAttempt(
            secret=Secret.OPERATOR_PASSWORD,
            account=f"operator:{account.handle}",
            address=f"10.202.1.{number}",
            device=None,
            is_known_network=False,
        )
        assert count_attempt(guess) is None

    next_code = account.code(later_by=1)  # because each code works once
    stranger = new_browser().sign_in(account.form(code=next_code))
    response = browser.sign_in(account.form(code=next_code))

    assert (stranger.status_code, response.status_code) == (429, 302)


def test_disabling_an_operator_ends_their_session() -> None:
    account, browser = make_account(), new_browser()
    browser.sign_in(account.form())

    disable_operator(handle=account.handle, now=timezone.now())

    assert not browser.is_signed_in()
    assert browser.sign_in(account.form(code=account.code(later_by=1))).status_code == 400


def test_resetting_an_operator_ends_their_sessions() -> None:
    account, browser = make_account(), new_browser()
    browser.sign_in(account.form())

    reset_operator(handle=account.handle)

    assert not browser.is_signed_in()


def test_a_session_expires_at_its_time_limit() -> None:
    browser = signed_in()
    stored_session = browser.session()

    stored_session["operator"] = stored_session["operator"] | {"until": time.time() - 1}
    stored_session.save()

    assert not browser.is_signed_in()


def test_signing_out_ends_the_session() -> None:
    browser = signed_in()
    session_token = browser.client.cookies[OPERATOR_SESSION_COOKIE].value

    browser.client.post("/operators/sign-out")
    browser.client.cookies[OPERATOR_SESSION_COOKIE] = session_token

    assert not browser.is_signed_in()


def test_signing_in_starts_a_new_session() -> None:
    browser = new_browser()
    browser.client.cookies[OPERATOR_SESSION_COOKIE] = "a" * 32

    browser.sign_in(make_account().form())

    assert browser.client.cookies[OPERATOR_SESSION_COOKIE].value != "a" * 32


@pytest.mark.parametrize("role", list(Role))
def test_a_tenants_users_cannot_open_the_operator_pages(cast: Cast, role: Role) -> None:
    person = cast.acme.people[role]
    client = Client()
    client.force_login(User.objects.get(id=person.user_id))

    as_operator = client.post(
        "/operators/sign-in", {"handle": person.email, "password": PASSWORD, "code": "000000"}
    )

    assert as_operator.status_code == 400
    for address in ("/operators/", f"/operators/tenants/{cast.acme.tenant_id}"):
        response = client.get(address)
        assert response.status_code == 302
        assert response["Location"].startswith("/operators/sign-in")


def test_a_console_session_is_refused_on_the_operator_pages(cast: Cast) -> None:
    client = Client()
    client.force_login(User.objects.get(id=cast.acme.administrator.user_id))
    client.cookies[OPERATOR_SESSION_COOKIE] = client.cookies[settings.SESSION_COOKIE_NAME].value

    response = client.get("/operators/")

    assert response.status_code == 302


def test_an_operators_session_is_refused_in_the_console() -> None:
    browser = signed_in()
    session_token = browser.client.cookies[OPERATOR_SESSION_COOKIE].value
    assert settings.SESSION_COOKIE_NAME not in browser.client.cookies
    browser.client.cookies[settings.SESSION_COOKIE_NAME] = session_token

    pages = [browser.client.get(address) for address in ("/", "/keys/new")]
    tenant = browser.client.get("/api/v1/tenant")

    assert all(page["Location"].startswith("/sign-in") for page in pages)
    assert tenant.status_code == 401
    assert browser.is_signed_in()


def test_an_operators_session_in_the_consoles_cookie_is_refused() -> None:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = (
        signed_in().client.cookies[OPERATOR_SESSION_COOKIE].value
    )

    assert client.get("/operators/").status_code == 302


def test_the_operator_cookies_are_limited_to_the_operator_path() -> None:
    client = Client()

    response = new_browser().sign_in(make_account().form())
    form = client.get("/operators/sign-in")

    (device,) = [name for name in response.cookies if name.startswith("caret-device-")]
    for cookie in (
        response.cookies[OPERATOR_SESSION_COOKIE],
        response.cookies[device],
        form.cookies["caret-operator-csrf"],
    ):
        assert cookie["path"] == "/operators/"
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
    assert set(cookie_names().values()) == {OPERATOR_SESSION_COOKIE, "caret-operator-csrf"}


def test_a_sign_in_without_a_csrf_token_is_refused() -> None:
    account = make_account()
    client = Client(enforce_csrf_checks=True)

    response = client.post("/operators/sign-in", account.form())

    assert response.status_code == 403


def test_the_command_shows_the_credentials_once(capsys: pytest.CaptureFixture[str]) -> None:
    handle = f"ola{secrets.token_hex(6)}"

    call_command("manage_operator", "create", handle, "--name", "Ola", "--role", "support")
    output = capsys.readouterr().out
    call_command("manage_operator", "list")
    account_list = capsys.readouterr().out

    # The first line of the output contains the word, and the second begins with it.
    password = output.split("password")[2].split()[0]
    assert "otpauth://totp/Caret%20operators" in output
    assert handle in account_list
    assert password not in account_list
    assert password not in Operator.objects.get(handle=handle).password


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 121, "1 to 120 characters"),
        (" ", "1 to 120 characters"),
        ("Ola\nNordmann", "invisible characters"),
    ],
    ids=["long", "empty", "unprintable"],
)
def test_the_command_refuses_an_invalid_name(name: str, message: str) -> None:
    handle = f"op{secrets.token_hex(4)}"

    with pytest.raises(CommandError, match=message):
        call_command("manage_operator", "create", handle, "--name", name)

    assert not Operator.objects.filter(handle=handle).exists()


def test_without_the_setting_the_operator_pages_do_not_exist() -> None:
    code = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "from django.urls import resolve, Resolver404\n"
        "from django.conf import settings\n"
        "try:\n    resolve('/operators/')\nexcept Resolver404:\n    print('none')"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "CARET_OPERATOR_ADMIN_PATH"
    }
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": "caret.settings"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )

    assert done.stdout == "none\n"
