"""Guesses at an account's password and codes are limited, also from many addresses in parallel.

A browser or network that signed in to the account before is known, and has its own limit. A device
cookie identifies a known browser.
"""

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core import signing
from django.test import Client

from console.limits.throttling import (
    MAX_ATTEMPTS,
    MAX_TRIES_OF_NETWORK,
    MAX_WAIT_S,
    Secret,
    SecretAttempt,
    count_attempt,
    count_request_of_network,
)
from tenants.base import redis_connection
from tenants.base.permissions import Role
from tenants.identity.passwords.operations import find_password_version
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import PASSWORD, Person, make_company
from tests.integration.sign_in import with_passkey
from tests.integration.sign_in.browser import Browser, code_of, new_browser
from tests.integration.sign_in.by_provider import fresh_client

WRONG = "a wrong password"


@pytest.fixture
def owner() -> Person:
    return make_company("initech", {Role.OWNER: "olga"}).people[Role.OWNER]


def guess(client: Client, email: str, password: str = WRONG) -> int:
    return client.post("/sign-in", {"email": email, "password": password}).status_code


def attempt_from(number: int, email: str, secret: Secret = Secret.PASSWORD) -> SecretAttempt:
    """Return an attempt of an unknown browser. Each number has its own IP address."""
    return SecretAttempt(
        secret=secret,
        account=email,
        address=f"10.9.{number // 250}.{number % 250}",
        device=None,
        is_known_network=False,
    )


def spend_attempts(email: str, secret: Secret = Secret.PASSWORD) -> None:
    """Use up attempts from many addresses, without the password checks, which are slow."""
    for number in range(MAX_ATTEMPTS[secret]):
        assert count_attempt(attempt_from(number, email, secret)) is None


def counters_of_unknown_devices() -> set[bytes]:
    """Return the Redis keys that count password attempts of unknown browsers."""
    return set(
        redis_connection.connect_to_redis().scan_iter(match="caret:throttle:password:*:unknown")
    )


def present_passkey(browser: with_passkey.Browser, passkey: SoftPasskey, page: str) -> str:
    """Show the passkey on this page and return the page to which it leads."""
    is_first_factor = page == "/sign-in/passkey"  # this page creates the challenge on a POST
    response = browser.client.post(page) if is_first_factor else browser.client.get(page)
    credential = json.dumps(passkey.get(with_passkey.read_challenge(response)))
    return str(browser.client.post(page, {"credential": credential})["Location"])


def test_guesses_at_an_account_are_throttled_across_ip_addresses(owner: Person) -> None:
    clients = [fresh_client() for _ in range(12)]

    statuses = [guess(client, owner.email) for _ in range(2) for client in clients]

    limit = MAX_ATTEMPTS[Secret.PASSWORD]
    assert statuses == [400] * limit + [429] * (len(statuses) - limit)


def test_an_unknown_address_is_throttled_in_the_same_way(owner: Person) -> None:
    unknown_email = f"{secrets.token_hex(4)}@nobody.example"
    pages = []
    for email in (owner.email, unknown_email):
        spend_attempts(email)
        page = fresh_client().post("/sign-in", {"email": email, "password": WRONG})
        pages.append((page.status_code, page.context["message"]))

    assert pages[0] == pages[1]
    assert pages[0][0] == 429


def test_another_spelling_of_the_address_has_the_same_limit(owner: Person) -> None:
    spend_attempts(owner.email)

    assert guess(fresh_client(), f" {owner.email.upper()} ", PASSWORD) == 429


def test_the_response_states_a_bounded_wait(owner: Person) -> None:
    spend_attempts(owner.email)

    page = fresh_client().post("/sign-in", {"email": owner.email, "password": PASSWORD})

    assert 0 < int(page["Retry-After"]) <= MAX_WAIT_S
    assert (
        b"Try again in 15 minutes. If you have a passkey, you can sign in with it now."
        in page.content
    )


def test_further_guesses_do_not_extend_the_wait(owner: Person) -> None:
    before = counters_of_unknown_devices()
    spend_attempts(owner.email)
    (counter,) = counters_of_unknown_devices() - before
    redis_connection.connect_to_redis().expire(counter, 100)  # the wait has 100 s left

    throttled = count_attempt(attempt_from(99, owner.email))

    assert throttled is not None
    assert throttled.wait_s <= 100


def test_guesses_do_not_lock_out_a_known_browser(owner: Person) -> None:
    browser = new_browser(owner)
    browser.sign_in()
    browser.client.post("/sign-out")
    browser.client.defaults["REMOTE_ADDR"] = "10.200.0.1"  # the user has a new address
    spend_attempts(owner.email)

    assert browser.sign_in() == "/"


def test_guesses_from_elsewhere_do_not_lock_out_a_known_network(owner: Person) -> None:
    browser = new_browser(owner)
    browser.sign_in()
    spend_attempts(owner.email)
    other_client = Client(REMOTE_ADDR=browser.client.defaults["REMOTE_ADDR"])

    assert guess(other_client, owner.email, PASSWORD) == 302


def test_a_known_browser_is_throttled_too(owner: Person) -> None:
    client = new_browser(owner).client
    guess(client, owner.email, PASSWORD)
    client.post("/sign-out")

    limit = MAX_ATTEMPTS[Secret.PASSWORD]
    statuses = [guess(client, owner.email) for _ in range(limit + 1)]

    assert statuses == [400] * limit + [429]


def test_one_accounts_device_cookie_is_invalid_for_another(owner: Person) -> None:
    attacker = new_browser(make_company("hooli", {Role.OWNER: "hank"}).people[Role.OWNER])
    attacker.sign_in()
    attacker.client.post("/sign-out")
    (attackers_cookie,) = [name for name in attacker.client.cookies if "caret-device-" in name]
    victim = new_browser(owner)
    victim.sign_in()
    (victims_cookie,) = [name for name in victim.client.cookies if "caret-device-" in name]
    attacker.client.cookies[victims_cookie] = attacker.client.cookies[attackers_cookie].value
    spend_attempts(owner.email)

    assert guess(attacker.client, owner.email, PASSWORD) == 429


def device_cookie_name(owner: Person) -> str:
    """Return the name of the device cookie that a sign-in to this account sets."""
    browser = new_browser(owner)
    browser.sign_in()
    (name,) = [name for name in browser.client.cookies if "caret-device-" in name]
    return name


class PastSigner(signing.TimestampSigner):
    """A signer whose signatures are `age` old."""

    def __init__(self, age: timedelta, **options: Any) -> None:
        super().__init__(**options)
        self._age = age

    def timestamp(self) -> str:
        return signing.b62_encode(int(time.time() - self._age.total_seconds()))


@pytest.mark.parametrize(
    ("key", "age", "status"),
    [
        pytest.param(None, timedelta(days=89), 302, id="genuine"),
        pytest.param(None, timedelta(days=91), 429, id="expired"),
        pytest.param("an attacker's key", timedelta(0), 429, id="forged"),
    ],
)
def test_a_forged_or_expired_cookie_does_not_make_a_browser_known(
    owner: Person, key: str | None, age: timedelta, status: int
) -> None:
    signer = PastSigner(age, key=key, salt=f"caret.known-device/1|{owner.email.lower()}")
    client = fresh_client()
    password_version = find_password_version(email=owner.email)
    device = ["a device's ID", password_version]
    client.cookies[device_cookie_name(owner)] = signer.sign_object(device)
    spend_attempts(owner.email)

    assert guess(client, owner.email, PASSWORD) == status


def test_a_changed_cookie_does_not_make_a_browser_known(owner: Person) -> None:
    browser = new_browser(owner)
    name = device_cookie_name(owner)
    browser.sign_in()
    # The cookie is payload:timestamp:signature.
    _, timestamp_and_signature = browser.client.cookies[name].value.split(":", 1)
    client = fresh_client()
    password_version = find_password_version(email=owner.email)
    device = ["another ID", password_version]
    payload = signing.b64_encode(json.dumps(device).encode()).decode()
    client.cookies[name] = f"{payload}:{timestamp_and_signature}"
    spend_attempts(owner.email)

    assert guess(client, owner.email, PASSWORD) == 429


def test_a_browser_is_known_only_after_the_second_factor(owner: Person) -> None:
    browser = new_browser(owner)
    browser.sign_in()
    secret = browser.set_up_app()
    other_browser = new_browser(owner)

    other_browser.sign_in()
    cookies_before_code = [name for name in other_browser.client.cookies if "caret-device-" in name]
    other_browser.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert not cookies_before_code
    assert [name for name in other_browser.client.cookies if "caret-device-" in name]
    assert not any(owner.email in str(cookie) for cookie in other_browser.client.cookies.values())


def test_the_device_cookie_is_hidden_from_scripts(owner: Person) -> None:
    browser = new_browser(owner)
    browser.sign_in()

    (cookie,) = [cookie for name, cookie in browser.client.cookies.items() if "-device-" in name]

    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["secure"] == (True if settings.HTTPS else "")  # "": the attribute is not set


def test_a_passkey_works_while_passwords_are_throttled(owner: Person) -> None:
    browser, passkey = with_passkey.Browser(owner), SoftPasskey()
    browser.sign_in()
    browser.add(passkey)
    spend_attempts(owner.email)

    assert present_passkey(with_passkey.Browser(owner), passkey, "/sign-in/passkey") == "/"


def test_parallel_guesses_do_not_pass_the_limit(owner: Person) -> None:
    def guess_at(number: int) -> bool:
        return count_attempt(attempt_from(number, owner.email)) is None

    with ThreadPoolExecutor(16) as threads:
        is_counted = list(threads.map(guess_at, range(60)))

    assert sum(is_counted) == MAX_ATTEMPTS[Secret.PASSWORD]


def make_browser_with_app(owner: Person) -> tuple[Browser, str]:
    """Return a browser that has set up an app, and the app's secret."""
    browser = new_browser(owner)
    browser.sign_in()
    return browser, browser.set_up_app()


def test_codes_are_throttled_across_ip_addresses(owner: Person) -> None:
    _, secret = make_browser_with_app(owner)
    thieves = [new_browser(owner) for _ in range(4)]
    for thief in thieves:
        thief.sign_in()
    *guessing_thieves, last_thief = thieves
    for number in range(MAX_ATTEMPTS[Secret.CODE]):
        guessing_thieves[number % len(guessing_thieves)].client.post(
            "/sign-in/code", {"code": "000000"}
        )

    response = last_thief.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= MAX_WAIT_S
    assert b"Too many attempts" in response.content
    assert not last_thief.is_signed_in()


def test_throttled_codes_block_neither_a_known_browser_nor_a_passkey(owner: Person) -> None:
    browser, secret = make_browser_with_app(owner)
    browser.client.defaults["HTTP_HOST"] = "localhost"  # passkeys are bound to the host name
    passkey = SoftPasskey()
    with_passkey.Browser(owner, browser.client).add(passkey)
    browser.client.post("/sign-out")
    spend_attempts(owner.email, Secret.CODE)
    browser.sign_in()
    by_passkey = with_passkey.Browser(owner)
    by_passkey.sign_in()

    by_code = browser.client.post("/sign-in/code", {"code": code_of(secret, later_by=1)})

    assert by_code["Location"] == "/"
    assert present_passkey(by_passkey, passkey, "/sign-in/code") == "/"


@pytest.mark.parametrize("page", ["/account/confirm", "/account/confirm/code"])
def test_step_ups_are_throttled(owner: Person, page: str) -> None:
    if page == "/account/confirm":
        secret = Secret.STEP_UP_PASSWORD
        browser = new_browser(owner)
        browser.sign_in()
        right_form = {"password": PASSWORD}
    else:
        secret = Secret.CODE
        browser, app_secret = make_browser_with_app(owner)
        right_form = {"code": code_of(app_secret, later_by=1)}
    wrong_form = dict.fromkeys(right_form, "000000")

    statuses = [
        browser.client.post(page, wrong_form).status_code for _ in range(MAX_ATTEMPTS[secret])
    ]
    refusal = browser.client.post(page, right_form)

    assert set(statuses) == {200}
    assert refusal.status_code == 429
    assert b"Too many attempts" in refusal.content
    assert browser.is_signed_in()


def test_guesses_at_the_sign_in_page_do_not_throttle_step_ups(owner: Person) -> None:
    browser = new_browser(owner)
    browser.sign_in()
    spend_attempts(owner.email)

    assert browser.client.post("/account/confirm", {"password": PASSWORD}).status_code == 302


def test_one_network_is_throttled_over_all_accounts() -> None:
    for _ in range(MAX_TRIES_OF_NETWORK):
        assert count_request_of_network(address="10.201.0.1") is None

    client = Client(REMOTE_ADDR="10.201.0.1")

    assert guess(client, f"{secrets.token_hex(4)}@nobody.example") == 429
