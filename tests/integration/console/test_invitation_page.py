"""The page on which a user, with or without an account, accepts an invitation to a tenant."""

import secrets
from contextlib import ExitStack, suppress

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from caret.foundation.ids import TenantId
from console.limits.password_hashing import MAX_HASHES, TooManyHashes, hashing_slot
from console.limits.throttling import MAX_TRIES_OF_NETWORK
from tenants.base.bearer_tokens import BearerTokenKind, create_token
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import remove_member
from tenants.models import User
from tenants.security.authorization.directory import find_memberships, find_user
from tests.fixtures.companies import PASSWORD, Cast
from tests.fixtures.users import Mailbox, make_colleague, make_stranger, send_invitation
from tests.integration.console.conftest import SignIn


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def make_email() -> str:
    return f"{secrets.token_hex(6)}@new.example"


def fresh_client() -> Client:
    """Return a client with a random IP address, because attempts are counted by IP address."""
    return Client(REMOTE_ADDR=f"10.{'.'.join(str(secrets.randbelow(250) + 1) for _ in range(3))}")


def test_the_token_is_removed_from_the_url_by_a_redirect(cast: Cast, mailbox: Mailbox) -> None:
    send_invitation(cast.acme, make_email(), mailbox=mailbox)

    response = fresh_client().get(f"/invitation/{mailbox.last_token}", follow=True)

    assert response.redirect_chain == [("/invitation", 302)]
    assert mailbox.last_token not in response.content.decode()
    assert b"Join Acme" in response.content


def test_a_new_user_gets_an_account_and_is_signed_in(cast: Cast, mailbox: Mailbox) -> None:
    email, client = make_email(), fresh_client()
    send_invitation(cast.acme, email, mailbox=mailbox)
    client.get(f"/invitation/{mailbox.last_token}")

    response = client.post("/invitation", {"name": "Nina", "password": PASSWORD}, follow=True)

    assert response.redirect_chain == [("/", 302)]
    assert email.encode() in response.content
    assert b"Welcome" in response.content


def test_a_new_owner_is_not_asked_again_for_the_password_that_they_have_just_set(
    cast: Cast, mailbox: Mailbox
) -> None:
    client = fresh_client()
    send_invitation(cast.acme, make_email(), mailbox=mailbox, role=Role.OWNER)
    client.get(f"/invitation/{mailbox.last_token}")
    client.post("/invitation", {"name": "Olga", "password": PASSWORD})

    # This page asks for the password again, unless the user authenticated recently.
    assert client.get("/sign-in-settings/provider/openid").status_code == 200


class _OneSlot:
    """Hashing slots of which the first caller gets one, and then other users occupy all."""

    def __init__(self) -> None:
        self._num_acquired = 0

    def acquire(self, *, timeout: float) -> bool:
        self._num_acquired += 1
        return self._num_acquired == 1

    def release(self) -> None:
        pass


def test_a_new_user_is_signed_in_although_all_hashing_slots_are_in_use_after_the_commit(
    cast: Cast, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fresh_client()
    send_invitation(cast.acme, make_email(), mailbox=mailbox)
    client.get(f"/invitation/{mailbox.last_token}")
    monkeypatch.setattr("console.limits.password_hashing._slots", _OneSlot())

    response = client.post("/invitation", {"name": "Nina", "password": PASSWORD}, follow=True)

    assert response.redirect_chain == [("/", 302)]
    assert b"Welcome" in response.content


def test_no_hashing_slot_is_occupied_while_the_snapshot_is_published(
    cast: Cast, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fresh_client()
    num_free_slots: list[int] = []

    def count_free_slots(_: TenantId) -> bool:
        with ExitStack() as held_slots, suppress(TooManyHashes):
            for number in range(1, MAX_HASHES + 1):
                held_slots.enter_context(hashing_slot())
                num_free_slots.append(number)
        return True

    send_invitation(cast.acme, make_email(), mailbox=mailbox)
    client.get(f"/invitation/{mailbox.last_token}")
    monkeypatch.setattr("console.limits.password_hashing.MAX_WAIT_S", 0.0)
    monkeypatch.setattr("tenants.policy.snapshot_version._publishers", [count_free_slots])

    client.post("/invitation", {"name": "Nina", "password": PASSWORD})

    assert max(num_free_slots) == MAX_HASHES


def test_a_weak_password_creates_no_account(cast: Cast, mailbox: Mailbox) -> None:
    email, client = make_email(), fresh_client()
    send_invitation(cast.acme, email, mailbox=mailbox)
    client.get(f"/invitation/{mailbox.last_token}")

    response = client.post("/invitation", {"name": "Nina", "password": "short"})

    assert response.status_code == 400
    assert find_user(email=email) is None


def test_a_user_with_an_account_signs_in_and_joins(
    cast: Cast, mailbox: Mailbox, sign_in: SignIn
) -> None:
    guest = make_stranger()
    send_invitation(cast.acme, guest.email, mailbox=mailbox)
    anonymous = fresh_client().get(f"/invitation/{mailbox.last_token}", follow=True)
    client = sign_in(guest)
    client.get(f"/invitation/{mailbox.last_token}")

    client.post("/invitation")

    assert b"/sign-in?next=/invitation" in anonymous.content
    assert [row.slug for row in find_memberships(user_id=guest.user_id)] == [cast.acme.slug]


def test_an_invitation_does_not_change_an_existing_accounts_password(
    cast: Cast, mailbox: Mailbox
) -> None:
    guest, client = make_stranger(), fresh_client()
    send_invitation(cast.acme, guest.email, mailbox=mailbox)
    client.get(f"/invitation/{mailbox.last_token}")

    response = client.post("/invitation", {"name": "Mallory", "password": PASSWORD})

    assert response.status_code == 400
    assert not User.objects.get(id=guest.user_id).check_password(PASSWORD)
    assert find_memberships(user_id=guest.user_id) == []


def test_a_different_signed_in_user_cannot_accept_the_invitation(
    cast: Cast, mailbox: Mailbox, sign_in: SignIn
) -> None:
    send_invitation(cast.acme, make_email(), mailbox=mailbox)
    gus = cast.globex.developer
    client = sign_in(gus)
    client.get(f"/invitation/{mailbox.last_token}")

    response = client.post("/invitation")

    assert response.status_code == 400
    assert [row.slug for row in find_memberships(user_id=gus.user_id)] == [cast.globex.slug]


def test_accepting_without_a_csrf_token_is_refused(
    cast: Cast, mailbox: Mailbox, sign_in: SignIn
) -> None:
    guest = make_stranger()
    send_invitation(cast.acme, guest.email, mailbox=mailbox)
    client = sign_in(guest)
    client.get(f"/invitation/{mailbox.last_token}")
    client.handler.enforce_csrf_checks = True

    assert client.post("/invitation").status_code == 403
    assert find_memberships(user_id=guest.user_id) == []


def test_an_unknown_token_shows_that_there_is_no_invitation() -> None:
    response = fresh_client().get("/invitation/civ_nothing", follow=True)

    assert response.status_code == 404
    assert b"No invitation" in response.content


def test_a_removed_members_session_is_refused(cast: Cast, sign_in: SignIn) -> None:
    ada = make_colleague(cast.acme)
    client = sign_in(ada)
    before = client.get("/api/v1/tenant").status_code

    remove_member(actor=cast.acme.platform, user_id=ada.user_id, reason="", now=timezone.now())

    assert (before, client.get("/api/v1/tenant").status_code) == (200, 403)
    assert client.get("/").status_code == 403


@pytest.mark.parametrize("token", ["nonsense", "a" * 4_000, "%00"])
def test_an_invalid_token_creates_no_session(token: str) -> None:
    before, client = Session.objects.count(), fresh_client()

    response = client.get(f"/invitation/{token}")

    assert response.status_code == 404
    assert (Session.objects.count(), len(client.cookies)) == (before, 0)


def test_a_well_formed_unknown_token_sets_no_cookie(cast: Cast) -> None:
    token = create_token(BearerTokenKind.INVITATION, cast.acme.tenant_id)
    client = fresh_client()

    assert client.get(f"/invitation/{token.text}").status_code == 404
    assert len(client.cookies) == 0


def test_guessing_tokens_is_throttled_by_ip_address(cast: Cast, mailbox: Mailbox) -> None:
    send_invitation(cast.acme, make_email(), mailbox=mailbox)
    client = fresh_client()
    for _ in range(MAX_TRIES_OF_NETWORK):
        client.get("/invitation/nonsense")

    response = client.get(f"/invitation/{mailbox.last_token}")

    assert response.status_code == 429
    assert fresh_client().get(f"/invitation/{mailbox.last_token}").status_code == 302
