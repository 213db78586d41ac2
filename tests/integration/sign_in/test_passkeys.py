"""Users add, rename and remove passkeys, and sign in with them; forged responses are refused.

Tests with a real browser are in tests/browser.
"""

import json

import pytest
from allauth.mfa.models import Authenticator
from django.utils import timezone

from console.limits.throttling import MAX_TRIES_OF_NETWORK
from tenants.base.permissions import Role
from tenants.identity.sso import operations as sso
from tests.fakes.console_client import Client
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import Company, Person, make_company
from tests.fixtures.users import make_domain
from tests.integration.sign_in.with_passkey import Browser, read_challenge


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga", Role.DEVELOPER: "dan"})


@pytest.fixture
def owner(company: Company) -> Person:
    return company.people[Role.OWNER]


@pytest.fixture
def passkey(owner: Person) -> SoftPasskey:
    """Return the owner's passkey."""
    browser, passkey = Browser(owner), SoftPasskey()
    browser.sign_in()
    added = browser.add(passkey)
    assert (added.status_code, added["Location"]) == (302, "/account/recovery-codes")
    return passkey


def find_passkey_row(person: Person) -> Authenticator:
    return Authenticator.objects.get(user_id=person.user_id, type="webauthn")


def test_the_passkey_script_gets_its_error_messages_in_the_users_language() -> None:
    page = Client().get("/sign-in", HTTP_ACCEPT_LANGUAGE="de").content.decode()

    assert 'data-not-allowed="Es wurde kein Passkey verwendet.' in page


def test_a_passkey_alone_signs_its_owner_in(owner: Person, passkey: SoftPasskey) -> None:
    browser = Browser(owner)

    response = browser.post_response(passkey.get(browser.request_challenge()))

    assert (response.status_code, response["Location"]) == (302, "/")
    assert browser.is_signed_in()


def test_signing_in_redirects_only_to_pages_of_the_console(
    owner: Person, passkey: SoftPasskey
) -> None:
    locations = []
    for target in ("/keys/new", "https://evil.example/"):
        browser = Browser(owner)
        response = browser.post_response(
            passkey.get(browser.request_challenge(next=target)), next=target
        )
        locations.append(response["Location"])

    assert locations == ["/keys/new", "/"]


def test_a_passkey_is_a_second_factor_after_a_password(owner: Person, passkey: SoftPasskey) -> None:
    browser = Browser(owner)

    next_page, was_signed_in = browser.sign_in(), browser.is_signed_in()
    challenge = read_challenge(browser.client.get("/sign-in/code"))
    form = {"credential": json.dumps(passkey.get(challenge))}
    response = browser.client.post("/sign-in/code", form)

    assert (next_page, was_signed_in) == ("/sign-in/code", False)
    assert response["Location"] == "/"
    assert browser.is_signed_in()


def test_a_passkey_meets_a_tenants_second_factor_requirement(
    company: Company, owner: Person, passkey: SoftPasskey
) -> None:
    sso.set_second_factor_required(actor=company.platform, is_required=True, now=timezone.now())
    browser, other_browser = Browser(owner), Browser(company.people[Role.DEVELOPER])

    browser.post_response(passkey.get(browser.request_challenge()))
    other_browser.sign_in()

    assert (browser.is_signed_in(), other_browser.is_signed_in()) == (True, False)


def test_a_passkey_without_user_verification_is_only_a_second_factor(owner: Person) -> None:
    passkey, browser = SoftPasskey(verifies_user=False), Browser(owner)
    browser.sign_in()
    browser.add(passkey, "Key ring")
    other_browser, passkey_browser = Browser(owner), Browser(owner)
    other_browser.sign_in()
    challenge = read_challenge(other_browser.client.get("/sign-in/code"))
    other_browser.client.post("/sign-in/code", {"credential": json.dumps(passkey.get(challenge))})

    response = passkey_browser.post_response(passkey.get(passkey_browser.request_challenge()))

    assert b"Only after your password" in browser.client.get("/account/second-factor").content
    assert other_browser.is_signed_in()
    assert response.status_code == 400
    assert not passkey_browser.is_signed_in()


def test_a_second_factor_challenge_cannot_replace_a_passkey_sign_in(
    company: Company, owner: Person
) -> None:
    """A developer finds the owner's security key, which has no PIN and needs only a touch. The key
    answers a challenge of the developer's own sign-in."""
    passkey, browser = SoftPasskey(verifies_user=False), Browser(owner)
    browser.sign_in()
    browser.add(passkey)
    finder = Browser(company.people[Role.DEVELOPER])
    finder.sign_in()
    finder.add(SoftPasskey())
    finder.client.post("/sign-out")
    finder.sign_in()
    challenge = read_challenge(finder.client.get("/sign-in/code"))

    response = finder.post_response(passkey.get(challenge))

    assert response.status_code == 400
    assert not finder.is_signed_in()


def test_the_first_passkey_creates_recovery_codes(owner: Person, passkey: SoftPasskey) -> None:
    types = Authenticator.objects.filter(user_id=owner.user_id).values_list("type", flat=True)

    assert set(types) == {"webauthn", "recovery_codes"}


def test_a_passkey_response_works_once(owner: Person, passkey: SoftPasskey) -> None:
    browser, other_browser = Browser(owner), Browser(owner)
    credential = passkey.get(browser.request_challenge())
    other_browser.request_challenge()

    replayed = other_browser.post_response(credential)
    browser.post_response(credential)
    browser.client.post("/sign-out")
    second_use = browser.post_response(credential)

    assert (replayed.status_code, second_use.status_code) == (400, 400)
    assert not other_browser.is_signed_in()
    assert not browser.is_signed_in()


def test_another_passkey_with_the_same_id_is_refused(owner: Person, passkey: SoftPasskey) -> None:
    browser = Browser(owner)
    forged = SoftPasskey(id=passkey.id, user=passkey.user)

    response = browser.post_response(forged.get(browser.request_challenge()))

    assert response.status_code == 400
    assert b"does not belong to your account" in response.content
    assert not browser.is_signed_in()


def test_a_passkey_with_another_users_handle_is_refused(
    company: Company, owner: Person, passkey: SoftPasskey
) -> None:
    thief = Browser(company.people[Role.DEVELOPER])
    thiefs_passkey = SoftPasskey()
    thief.sign_in()
    thief.add(thiefs_passkey)
    thief.client.post("/sign-out")
    thiefs_passkey.user = passkey.user

    response = thief.post_response(thiefs_passkey.get(thief.request_challenge()))

    assert response.status_code == 400
    assert not thief.is_signed_in()


def test_a_response_obtained_by_another_origin_is_refused(
    owner: Person, passkey: SoftPasskey
) -> None:
    browser = Browser(owner)
    passkey.origin = "https://caret.evil.example"

    response = browser.post_response(passkey.get(browser.request_challenge()))

    assert response.status_code == 400
    assert not browser.is_signed_in()


def test_a_user_of_an_identity_provider_cannot_use_a_passkey(
    company: Company, owner: Person, passkey: SoftPasskey
) -> None:
    make_domain(company, f"{company.slug}.example", verified=True)
    new = sso.OidcProviderConfig("http://127.0.0.1:9", "a", "b")
    sso.set_provider(actor=company.platform, new=new, now=timezone.now())
    browser = Browser(owner)

    response = browser.post_response(passkey.get(browser.request_challenge()))

    assert response.status_code == 403
    assert b"identity provider" in response.content
    assert not browser.is_signed_in()


def test_a_provider_session_cannot_add_passkeys(owner: Person) -> None:
    browser = Browser(owner)
    browser.sign_in()
    browser.confirm()
    session = browser.client.session
    session["signed-in-by-provider"] = "some tenant"
    session.save()

    for address in ("/account/passkeys/new", "/account/confirm/passkey", "/account/second-factor"):
        for response in (browser.client.get(address), browser.client.post(address, {})):
            assert response.status_code == 403


def test_only_the_first_passkey_ends_other_sessions(company: Company) -> None:
    dan = company.people[Role.DEVELOPER]
    browser, other_browser, later_browser = Browser(dan), Browser(dan), Browser(dan)
    browser.sign_in()
    other_browser.sign_in()
    browser.add(SoftPasskey())
    other_browser_after_first_passkey = other_browser.is_signed_in()
    later_browser.sign_in()
    later_browser.client.post("/sign-in/code", {"code": list_recovery_codes(browser)[0]})

    browser.add(SoftPasskey())

    assert not other_browser_after_first_passkey
    assert later_browser.is_signed_in()
    assert browser.is_signed_in()


def list_recovery_codes(browser: Browser) -> list[str]:
    return list(browser.client.get("/account/recovery-codes").context["unused_codes"])


@pytest.mark.parametrize("path", ["/account/passkeys/new", "/account/passkeys/{pk}"])
def test_changing_passkeys_requires_a_step_up(
    owner: Person, passkey: SoftPasskey, path: str
) -> None:
    browser = Browser(owner)
    browser.post_response(passkey.get(browser.request_challenge()))

    response = browser.client.post(path.format(pk=find_passkey_row(owner).pk), {"name": "x"})

    assert response["Location"].startswith("/account/confirm")


def test_a_step_up_works_with_the_passkey(owner: Person, passkey: SoftPasskey) -> None:
    browser = Browser(owner)
    browser.post_response(passkey.get(browser.request_challenge()))
    address = "/account/confirm/passkey?next=/account/passkeys/new"
    page = browser.client.get(address)

    refused = browser.client.post(address, {"credential": json.dumps({"no": "credential"})})
    challenge = read_challenge(refused)
    form = {"credential": json.dumps(passkey.get(challenge)), "next": "/account/passkeys/new"}
    accepted = browser.client.post("/account/confirm/passkey", form)

    assert b"Use your password instead" in page.content
    assert b"sent an unexpected response" in refused.content
    assert accepted["Location"] == "/account/passkeys/new"
    assert browser.client.get("/account/passkeys/new").status_code == 200


def test_a_user_renames_and_removes_a_passkey(owner: Person, passkey: SoftPasskey) -> None:
    browser, pk = Browser(owner), find_passkey_row(owner).pk
    browser.post_response(passkey.get(browser.request_challenge()))
    browser.confirm()

    browser.client.post(f"/account/passkeys/{pk}", {"name": "<b>Old & grey</b>"})
    factor_page = browser.client.get("/account/second-factor").content
    browser.client.post(f"/account/passkeys/{pk}/remove")

    assert b"&lt;b&gt;Old &amp; grey&lt;/b&gt;" in factor_page
    assert not Authenticator.objects.filter(user_id=owner.user_id).exists()
    other_browser = Browser(owner)
    credential = passkey.get(other_browser.request_challenge())
    assert other_browser.post_response(credential).status_code == 400


def test_another_users_passkey_cannot_be_renamed_or_removed(
    company: Company, owner: Person, passkey: SoftPasskey
) -> None:
    other_browser, pk = Browser(company.people[Role.DEVELOPER]), find_passkey_row(owner).pk
    other_browser.sign_in()
    other_browser.confirm()

    statuses = [
        other_browser.client.post(f"/account/passkeys/{pk}{action}", {"name": "x"}).status_code
        for action in ("", "/remove")
    ]

    assert statuses == [404, 404]
    assert find_passkey_row(owner).wrap().name == "Laptop"


def test_only_the_needed_fields_of_a_response_are_stored(owner: Person) -> None:
    browser, passkey = Browser(owner), SoftPasskey()
    browser.sign_in()
    browser.confirm()
    challenge = read_challenge(browser.client.get("/account/passkeys/new"))
    credential = passkey.create(challenge) | {"planted": "\0 anything"}
    form = {"name": "x", "credential": json.dumps(credential)}

    browser.client.post("/account/passkeys/new", form)

    data = find_passkey_row(owner).data
    assert set(data["credential"]) == {"id", "rawId", "type", "response", "clientExtensionResults"}


def malformed_responses() -> list[str]:
    """Return broken JSON, JSON of a wrong structure, and responses to another challenge."""
    passkey = SoftPasskey()
    options = {"challenge": "eA", "rpId": "x", "rp": {"id": "x"}, "user": {"id": "eA"}}
    request = {"publicKey": options}
    creation, assertion = passkey.create(request), passkey.get(request)
    broken: list[object] = [None, 1, "x", [], {}, {"response": 1}, {"id": "é", "rawId": "é"}]
    for response in (creation, assertion):
        broken += [
            response,
            {**response, "id": 1},
            {**response, "rawId": "\0"},
            {**response, "type": None},
            {**response, "clientExtensionResults": []},
            {**response, "clientExtensionResults": {"credProps": 1}},
        ]
        for name in response["response"]:
            for value in (None, 1, "é", "AAAA"):
                broken.append({**response, "response": {**response["response"], name: value}})
    texts = [json.dumps(malformed) for malformed in broken]
    return [*texts, "", "{", "\0", "[" * 9_000, '{"a":' * 3_000, "9" * 5_000, "x" * 100_000]


def test_a_malformed_response_causes_no_server_error(owner: Person, passkey: SoftPasskey) -> None:
    browser, browser_at_code_page = Browser(owner), Browser(owner)
    browser.post_response(passkey.get(browser.request_challenge()))
    browser.confirm()
    browser_at_code_page.sign_in()

    for text in malformed_responses():
        form = {"credential": text}
        assert Browser(owner).client.post("/sign-in/passkey", form).status_code == 400, text
        # These two pages show their form again, with status 200.
        assert browser_at_code_page.client.post("/sign-in/code", form).status_code == 200, text
        assert browser.client.post("/account/passkeys/new", form).status_code == 200, text

    assert Authenticator.objects.filter(user_id=owner.user_id, type="webauthn").count() == 1


def test_the_number_of_passkeys_per_user_is_limited(owner: Person) -> None:
    browser = Browser(owner)
    browser.sign_in()
    browser.add(SoftPasskey())
    row = find_passkey_row(owner)
    Authenticator.objects.bulk_create(
        Authenticator(user_id=owner.user_id, type="webauthn", data=row.data) for _ in range(19)
    )

    response = browser.add(SoftPasskey())

    assert b"You already have 20 passkeys" in response.content


def test_passkey_challenges_are_rate_limited(owner: Person) -> None:
    client, page = Browser(owner).client, "/sign-in/passkey"

    statuses = [client.post(page).status_code for _ in range(MAX_TRIES_OF_NETWORK + 1)]

    assert statuses == [200] * MAX_TRIES_OF_NETWORK + [429]


def test_an_anonymous_visit_creates_no_session() -> None:
    client = Client(HTTP_HOST="localhost")

    response = client.get("/sign-in/passkey")

    assert response["Location"] == "/sign-in"
    assert not client.cookies


def test_forms_without_a_csrf_token_are_refused(owner: Person, passkey: SoftPasskey) -> None:
    browser, pk = Browser(owner), find_passkey_row(owner).pk
    browser.post_response(passkey.get(browser.request_challenge()))
    browser.confirm()
    browser.client.handler.enforce_csrf_checks = True

    for address in ("/account/passkeys/new", f"/account/passkeys/{pk}/remove", "/sign-in/passkey"):
        assert browser.client.post(address, {}).status_code == 403
