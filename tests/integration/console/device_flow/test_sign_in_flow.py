"""Sign-in from an editor by the device flow (RFC 8628), over HTTP as the editor sends it."""

import secrets
from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.api_key import parse_key
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.throttling import MAX_DEVICE_CODES, MAX_TRIES_OF_NETWORK
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.queries import is_key_active
from tenants.identity.member_lifecycle import remove_member
from tenants.identity.own_keys.device_requests import ALPHABET, INTERVAL_S, LIFETIME
from tenants.identity.own_keys.operations import DEVICE_KEY_LIFETIME
from tenants.models import AuditEntry
from tests.fakes.console_client import Client
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.fixtures.users import make_colleague
from tests.integration.console.conftest import SignIn
from tests.integration.console.device_flow.conftest import make_address
from tests.integration.console.device_flow.editor import (
    START_FIELDS,
    Editor,
    change_policy,
    keys_of,
    open_page,
    post_decision,
)
from tests.integration.console.pages.step_up import with_recent_step_up

# --- from the first request to the key


def test_a_confirmed_editor_gets_a_key_of_its_own(
    company: Company, ada: Client, editor: Editor
) -> None:
    codes = editor.start()
    pending = editor.poll()
    page = open_page(ada, editor.user_code).content.decode()
    confirmed = post_decision(ada, company, editor.user_code)
    token = editor.poll()

    assert (
        codes["verification_uri_complete"]
        == f"{codes['verification_uri']}?code={codes['user_code']}"
    )
    assert (codes["expires_in"], codes["interval"]) == (LIFETIME.total_seconds(), INTERVAL_S)
    assert pending["error"] == "authorization_pending"
    for expected in ("Neovim 0.11", "ada-laptop", editor.address, editor.user_code):
        assert expected in page
    assert confirmed["Location"] == "/device?done=confirmed"
    key = parse_key(token["access_token"])
    assert key is not None
    assert is_key_active(tenant_id=company.tenant_id, key=key, now=editor.now)
    (row,) = keys_of(company)
    assert (row.name, row.is_device) == ("Neovim 0.11 on ada-laptop", True)
    assert str(row.owner_id) == company.developer.user_id
    assert token["scope"].split() == row.scopes
    assert "inference" not in row.scopes
    assert token["token_type"] == "Bearer"
    assert 0 < token["expires_in"] <= DEVICE_KEY_LIFETIME.total_seconds()
    key_list = ada.get("/account/keys", {"origin": "devices"}).content.decode()
    assert "Neovim 0.11 on ada-laptop" in key_list
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="key.created")
    assert (str(entry.actor_id), entry.address) == (company.developer.user_id, editor.address)


def test_the_user_can_revoke_the_device(company: Company, ada: Client, editor: Editor) -> None:
    with_recent_step_up(ada, company.developer)
    editor.start()
    post_decision(ada, company, editor.user_code)
    key = parse_key(editor.poll()["access_token"])
    assert key is not None

    page = ada.get(f"/keys/{key.lookup_id}").content.decode()
    ada.post(f"/keys/{key.lookup_id}/revoke", {"reason": ""})

    assert "/revoke" in page
    assert not is_key_active(tenant_id=company.tenant_id, key=key, now=editor.now)


@pytest.mark.parametrize("separator", ["", " "])
def test_a_code_can_be_typed_in_lower_case_and_without_its_hyphen(
    ada: Client, editor: Editor, separator: str
) -> None:
    editor.start()

    response = open_page(ada, editor.user_code.lower().replace("-", separator))

    assert editor.user_code in response.content.decode()
    # A code has only capital letters, so lower case is unambiguous.
    assert set(editor.user_code) <= {*ALPHABET, "-"}


def test_redis_contains_no_code_in_plain_text(ada: Client, editor: Editor) -> None:
    codes = editor.start()
    open_page(ada, editor.user_code)

    stored = []
    for name in connect_to_redis().scan_iter("caret:device-flow:*"):
        is_hash = connect_to_redis().type(name) == b"hash"
        stored.append(
            (name, connect_to_redis().hgetall(name) if is_hash else connect_to_redis().get(name))
        )
    text = repr(stored)
    assert stored
    assert codes["device_code"] not in text
    assert codes["user_code"] not in text
    assert codes["user_code"].replace("-", "") not in text


# --- a code that is denied, or expires, and an editor that polls too fast


def test_a_denied_editor_gets_no_key(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    post_decision(ada, company, editor.user_code, "deny")

    assert editor.poll()["error"] == "access_denied"
    assert keys_of(company) == []


def test_a_code_expires_after_ten_minutes(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    open_page(ada, editor.user_code)
    editor.wait(timedelta(minutes=10))

    assert open_page(ada, editor.user_code).status_code == 404
    assert post_decision(ada, company, editor.user_code).status_code == 404
    assert editor.poll()["error"] == "expired_token"


def test_a_confirmed_code_expires_too(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    post_decision(ada, company, editor.user_code)
    editor.wait(LIFETIME)

    assert editor.poll()["error"] == "expired_token"
    assert keys_of(company) == []


def test_an_editor_that_polls_too_fast_is_slowed_down(editor: Editor) -> None:
    editor.start()

    errors = [editor.poll(waits_s=wait)["error"] for wait in (1, 1, 5, 15)]

    # The first poll is never too early. Each poll that is too early makes the required interval,
    # which is 5 s at first, five seconds longer: 10 s after the second poll, 15 s after the third.
    assert errors == ["authorization_pending", "slow_down", "slow_down", "authorization_pending"]


# --- a code used twice, guessed, or confirmed by another user


def test_a_code_used_twice_revokes_the_key(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    post_decision(ada, company, editor.user_code)
    key = parse_key(editor.poll()["access_token"])
    assert key is not None

    second_poll = editor.poll()

    assert second_poll["error"] == "invalid_grant"
    assert not is_key_active(tenant_id=company.tenant_id, key=key, now=editor.now)
    assert len(keys_of(company)) == 1


def test_a_code_cannot_be_confirmed_twice(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    post_decision(ada, company, editor.user_code, "deny")

    assert post_decision(ada, company, editor.user_code).status_code == 404
    assert editor.poll()["error"] == "access_denied"


def test_another_user_cannot_confirm_a_code_that_a_user_has_opened(
    company: Company, ada: Client, editor: Editor, sign_in: SignIn
) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)
    thief, colleague = sign_in(globex.developer), sign_in(company.administrator)
    editor.start()
    open_page(ada, editor.user_code)

    responses = [
        post_decision(thief, globex, editor.user_code),
        post_decision(colleague, company, editor.user_code),
    ]

    assert [response.status_code for response in responses] == [404, 404]
    for response in responses:
        assert "ada-laptop" not in response.content.decode()
    assert editor.poll()["error"] == "authorization_pending"


def test_a_confirmation_for_a_tenant_that_the_page_did_not_show_is_a_conflict(
    company: Company, ada: Client, editor: Editor
) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)
    editor.start()
    open_page(ada, editor.user_code)

    response = ada.post("/device", {"code": editor.user_code, "tenant": globex.tenant_id})

    assert response.status_code == 409
    assert editor.poll()["error"] == "authorization_pending"
    assert keys_of(globex) == keys_of(company) == []


def test_guesses_are_limited_for_each_user(company: Company, sign_in: SignIn) -> None:
    client = sign_in(make_colleague(company))

    statuses = []
    for number in range(MAX_DEVICE_CODES + 1):
        # Another IP address each time, so that only the limit of the user applies.
        client.defaults["REMOTE_ADDR"] = f"10.77.{secrets.randbelow(250)}.{number}"
        statuses.append(open_page(client, "BBBB-BBBB").status_code)

    assert statuses == [404] * MAX_DEVICE_CODES + [429]


def test_guesses_are_limited_for_each_network(company: Company, sign_in: SignIn) -> None:
    address = make_address()
    statuses = []
    for _ in range(4):  # enough users to reach the limit of the network before their own limits
        client = sign_in(make_colleague(company))
        client.defaults["REMOTE_ADDR"] = address
        statuses += [
            open_page(client, "BBBB-BBBB").status_code for _ in range(MAX_DEVICE_CODES - 1)
        ]

    assert statuses.count(404) == MAX_TRIES_OF_NETWORK
    assert statuses[-1] == 429


def test_right_codes_do_not_count_as_guesses(ada: Client, editor: Editor) -> None:
    editor.start()

    statuses = {open_page(ada, editor.user_code).status_code for _ in range(MAX_DEVICE_CODES + 1)}

    assert statuses == {200}


def test_requests_for_codes_are_limited_for_each_network(editor: Editor) -> None:
    responses = [
        editor.post("/oauth/device_authorization", START_FIELDS)
        for _ in range(MAX_TRIES_OF_NETWORK + 1)
    ]

    assert [response.status_code for response in responses[-2:]] == [200, 429]
    assert responses[-1]["Retry-After"]


# --- what the policy and the membership allow


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_roles_that_may_not_have_keys_cannot_confirm(
    company: Company, sign_in: SignIn, editor: Editor, role: Role
) -> None:
    editor.start()

    response = post_decision(sign_in(company.people[role]), company, editor.user_code)

    assert response.status_code == 400
    assert editor.poll()["error"] == "authorization_pending"


def test_a_policy_without_own_keys_refuses_the_confirmation(
    company: Company, ada: Client, editor: Editor
) -> None:
    change_policy(company, allows_own_keys=False)
    editor.start()

    response = post_decision(ada, company, editor.user_code)

    assert response.status_code == 400
    assert "does not allow" in response.content.decode()


def test_the_policy_limits_the_scope_and_the_lifetime_of_the_key(
    company: Company, ada: Client, editor: Editor
) -> None:
    change_policy(company, features=["inline"], max_key_lifetime_days=3)
    editor.start()
    post_decision(ada, company, editor.user_code)
    token = editor.poll()

    assert token["scope"] == "inference:inline"
    assert token["expires_in"] <= 3 * 86_400


def test_a_membership_that_ended_after_the_confirmation_gives_no_key(
    company: Company, ada: Client, editor: Editor
) -> None:
    editor.start()
    post_decision(ada, company, editor.user_code)
    remove_member(
        actor=company.platform,
        user_id=company.developer.user_id,
        reason="left",
        now=timezone.now(),
    )

    assert editor.poll()["error"] == "access_denied"
    assert keys_of(company) == []
