"""Users sign in with their password and sign out; the number of wrong passwords is limited."""

from contextlib import ExitStack

import pytest
from django.test import Client, override_settings

from console.limits.password_hashing import MAX_HASHES, hashing_slot
from console.limits.throttling import (
    MAX_TRIES,
    MAX_TRIES_OF_NETWORK,
    Secret,
    SecretAttempt,
    count_attempt,
)
from tenants.base import redis_connection
from tests.fixtures.companies import PASSWORD, Cast, Person
from tests.integration.console.conftest import SignIn


def sign_in_status(client: Client, person: Person, password: str = PASSWORD) -> int:
    return client.post("/sign-in", {"email": person.email, "password": password}).status_code


def test_the_right_password_opens_the_overview(cast: Cast) -> None:
    client = Client()

    response = client.post(
        "/sign-in", {"email": cast.acme.administrator.email, "password": PASSWORD}, follow=True
    )

    assert response.redirect_chain == [("/", 302)]
    assert b"Acme" in response.content


def test_after_a_wrong_password_the_form_shows_an_error_and_keeps_the_email(cast: Cast) -> None:
    ada = cast.acme.developer

    response = Client().post("/sign-in", {"email": ada.email, "password": "wrong"})

    assert response.status_code == 400
    assert b"password is wrong" in response.content
    assert ada.email.encode() in response.content


def test_an_unknown_email_gets_the_error_of_a_wrong_password(cast: Cast) -> None:
    known_email = Client().post("/sign-in", {"email": cast.acme.developer.email, "password": "no"})
    unknown_email = Client().post("/sign-in", {"email": "nobody@x.example", "password": "no"})

    for answer in (known_email, unknown_email):
        assert answer.status_code == 400
        assert b"The e-mail address or password is wrong." in answer.content


def test_the_sixth_try_within_a_minute_is_refused_even_with_the_right_password(cast: Cast) -> None:
    client, bob = Client(REMOTE_ADDR="198.51.100.1"), cast.globex.administrator

    answers = [sign_in_status(client, bob, "wrong") for _ in range(MAX_TRIES)]
    refusal = client.post("/sign-in", {"email": bob.email, "password": PASSWORD})

    assert answers == [400] * MAX_TRIES
    assert refusal.status_code == 429
    assert 0 < int(refusal["Retry-After"]) <= 60
    assert b"Too many attempts. Try again in 1 minute." in refusal.content


def test_the_limit_does_not_apply_to_another_ip_address(cast: Cast) -> None:
    gus = cast.globex.developer
    for _ in range(MAX_TRIES + 1):
        sign_in_status(Client(REMOTE_ADDR="198.51.100.2"), gus, "wrong")

    assert sign_in_status(Client(REMOTE_ADDR="198.51.100.3"), gus) == 302


def test_successful_sign_ins_do_not_count_against_the_accounts_limit(cast: Cast) -> None:
    alice = cast.acme.administrator

    right_password_statuses = [
        sign_in_status(Client(REMOTE_ADDR="198.51.100.4"), alice) for _ in range(MAX_TRIES + 1)
    ]
    wrong_password_statuses = [
        sign_in_status(Client(REMOTE_ADDR="198.51.100.4"), alice, "no")
        for _ in range(MAX_TRIES + 1)
    ]

    assert right_password_statuses == [302] * (MAX_TRIES + 1)
    assert wrong_password_statuses == [400] * MAX_TRIES + [429]


def test_sign_in_is_unavailable_without_redis(cast: Cast) -> None:
    form = {"email": cast.acme.developer.email, "password": PASSWORD}
    redis_connection.connect_to_redis.cache_clear()
    try:
        with override_settings(REDIS_URL="unix:///nonexistent/valkey.sock"):
            response = Client().post("/sign-in", form)
    finally:
        redis_connection.connect_to_redis.cache_clear()

    assert response.status_code == 503
    assert b"Redis does not respond" in response.content


def test_a_form_without_its_csrf_token_is_refused(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True)

    assert sign_in_status(client, cast.acme.developer) == 403


def test_signing_in_changes_the_session_cookie(cast: Cast) -> None:
    client = Client()
    before = client.session  # a session that an attacker could have planted
    before.save()
    client.cookies["caret-session"] = str(before.session_key)

    sign_in_status(client, cast.acme.developer)

    assert client.cookies["caret-session"].value != before.session_key
    assert client.cookies["caret-session"]["httponly"]


def test_signing_in_redirects_to_the_requested_page(cast: Cast) -> None:
    response = Client().post(
        "/sign-in",
        {
            "email": cast.acme.administrator.email,
            "password": PASSWORD,
            "next": "/keys/new",
        },
    )

    assert response["Location"] == "/keys/new"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_signing_in_never_redirects_to_another_site(cast: Cast, target: str) -> None:
    response = Client().post(
        "/sign-in",
        {"email": cast.acme.administrator.email, "password": PASSWORD, "next": target},
    )

    assert response["Location"] == "/"


def test_signing_out_ends_the_session(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    client.post("/sign-out")

    assert client.get("/")["Location"] == "/sign-in?next=/"


def test_signing_out_by_a_link_does_nothing(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)

    assert client.get("/sign-out").status_code == 405
    assert client.get("/").status_code == 200


def spend_tries(count: int, *, address: str) -> None:
    """Use up attempts, each for another e-mail address, without the slow password checks."""
    for number in range(count):
        guess = SecretAttempt(
            Secret.PASSWORD,
            account=f"{number}@x.example",
            address=address,
            device=None,
            is_known_network=False,
        )
        assert count_attempt(guess) is None


def test_the_limit_of_an_ip_address_covers_all_accounts(cast: Cast) -> None:
    spend_tries(MAX_TRIES_OF_NETWORK, address="198.51.100.5")

    assert sign_in_status(Client(REMOTE_ADDR="198.51.100.5"), cast.acme.developer) == 429


def test_a_successful_sign_in_counts_against_the_networks_limit(cast: Cast) -> None:
    spend_tries(MAX_TRIES_OF_NETWORK - 1, address="198.51.100.6")

    answers = [
        sign_in_status(Client(REMOTE_ADDR="198.51.100.6"), cast.acme.developer) for _ in range(2)
    ]

    assert answers == [302, 429]


def test_the_addresses_of_one_ipv6_network_count_as_one(cast: Cast) -> None:
    spend_tries(MAX_TRIES_OF_NETWORK, address="2001:db8:0:1::7")

    status_in_network = sign_in_status(
        Client(REMOTE_ADDR="2001:db8:0:1:ffff::1"), cast.acme.developer
    )
    status_elsewhere = sign_in_status(Client(REMOTE_ADDR="2001:db8:0:2::1"), cast.acme.developer)

    assert (status_in_network, status_elsewhere) == (429, 302)


def test_sign_in_asks_to_retry_while_all_hashing_slots_are_in_use(cast: Cast) -> None:
    with ExitStack() as held_slots:
        for _ in range(MAX_HASHES):
            held_slots.enter_context(hashing_slot())
        client = Client(REMOTE_ADDR="198.51.100.7")
        response = client.post(
            "/sign-in", {"email": cast.acme.developer.email, "password": PASSWORD}
        )

    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert b"Try again in a few seconds" in response.content
    assert sign_in_status(client, cast.acme.developer) == 302


def test_an_email_with_a_nul_character_is_a_failed_attempt() -> None:
    response = Client(REMOTE_ADDR="198.51.100.8").post(
        "/sign-in", {"email": "a\0@x.example", "password": PASSWORD}
    )

    assert response.status_code == 400
    assert b"password is wrong" in response.content


def encoded_form(charset: str, email: str) -> tuple[bytes, str]:
    """Return a form's body, always in UTF-8, and a content type that states `charset`."""
    body = f'--b\r\nContent-Disposition: form-data; name="email"\r\n\r\n{email}\r\n--b--\r\n'
    return body.encode(), f"multipart/form-data; boundary=b; charset={charset}"


@pytest.mark.parametrize("charset", ["unicode_escape", "utf-7", "zlib", "idna", "latin-1"])
def test_a_form_that_is_not_in_utf_8_is_refused(charset: str) -> None:
    # The charset unicode_escape would decode the escape to a surrogate, which UTF-8 cannot encode.
    body, content_type = encoded_form(charset, "\\ud800@x.example")

    response = Client(REMOTE_ADDR="198.51.100.9").generic("POST", "/sign-in", body, content_type)

    assert response.status_code == 400
    assert b"could not understand this request" in response.content
    assert "default-src 'none'" in response["Content-Security-Policy"]


def test_a_query_in_another_encoding_is_rejected() -> None:
    client = Client(REMOTE_ADDR="198.51.100.9")

    # Django decodes the query by the charset of the Content-Type header.
    page = client.get("/sign-in?next=%5Cud800", CONTENT_TYPE="text/plain; charset=unicode_escape")
    answer = client.get("/api/v1/keys", CONTENT_TYPE="application/json; charset=utf-7")

    assert page.status_code == 400
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


# Django reads a form with an unknown charset as UTF-8.
@pytest.mark.parametrize("charset", ["utf-8", "UTF8", '"utf-8"', "none-such"])
def test_a_form_whose_charset_is_utf_8_or_unknown_is_accepted(charset: str) -> None:
    body, content_type = encoded_form(charset, "jos\u00e9@x.example")

    response = Client(REMOTE_ADDR="198.51.100.10").generic("POST", "/sign-in", body, content_type)

    assert "jos\u00e9@x.example" in response.content.decode()
