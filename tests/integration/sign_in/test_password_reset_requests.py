"""A user or an operator requests a link to reset a password, and a worker mails it.

`olga` signs in with a password. The tenant of `owner` requires single sign-on.
"""

import re
import secrets
import smtplib
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.limits.throttling import MAX_ATTEMPTS, MAX_TRIES_OF_NETWORK, MAX_WAIT_S, Secret
from tenants.base import redis_connection
from tenants.base.redis_lock import redis_lock
from tenants.identity.passwords.reset_links import ResetLink
from tenants.identity.passwords.reset_mail import enqueue_reset_request, mail_requested_links
from tenants.identity.tasks import mail_reset_links
from tests.fixtures.companies import Company, Person
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.passwords import (
    NEW_PASSWORD,
    QUEUE,
    can_sign_in,
    find_user_row,
    is_unusable,
    keep_mails_in_memory,
    list_password_entries,
    mailed_link,
    open_link,
    request_link,
    signed_in,
)
from tests.integration.sign_in.test_throttle import spend_attempts


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    keep_mails_in_memory(settings)


def test_the_response_does_not_reveal_whether_an_account_exists(olga: Person) -> None:
    responses, query_counts = [], []
    for email in (olga.email, f"{secrets.token_hex(4)}@nobody.example"):
        with CaptureQueriesContext(connection) as captured:
            responses.append(request_link(email))
        query_counts.append(len(captured))

    assert {response["Location"] for response in responses} == {"/forgot-password/sent"}
    assert {response.status_code for response in responses} == {302}
    assert query_counts == [0, 0], "a query could take longer for an account that exists"
    assert mail.outbox == [], "only the worker sends e-mails"


def test_only_an_account_gets_an_email(olga: Person) -> None:
    request_link(f"{secrets.token_hex(4)}@nobody.example")
    request_link(f"  {olga.email.upper()} ")

    assert mail_requested_links(now=timezone.now()) == 2
    assert [message.to for message in mail.outbox] == [[olga.email]]


def test_requests_for_unknown_addresses_do_not_delay_the_others(olga: Person) -> None:
    for number in range(50):
        enqueue_reset_request(email=f"{number}@nobody.example", now=timezone.now())
    enqueue_reset_request(email=olga.email, now=timezone.now())

    mail_requested_links(now=timezone.now())

    assert [message.to for message in mail.outbox] == [[olga.email]]


def test_one_run_looks_up_a_bounded_number_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenants.identity.passwords.reset_mail._MAX_LOOKUPS", 3)
    for number in range(5):
        enqueue_reset_request(email=f"{number}@nobody.example", now=timezone.now())

    assert [mail_requested_links(now=timezone.now()) for _ in range(2)] == [3, 2]


def test_one_worker_at_a_time_sends_the_emails(olga: Person) -> None:
    request_link(olga.email)

    with redis_lock(redis_connection.connect_to_redis(), "password-reset-mail"):
        mail_reset_links()
        assert mail.outbox == []
    mail_reset_links()

    assert [message.to for message in mail.outbox] == [[olga.email]]


@pytest.mark.parametrize("is_known", [True, False])
def test_requests_for_one_account_are_throttled(olga: Person, is_known: bool) -> None:
    email = olga.email if is_known else f"{secrets.token_hex(4)}@nobody.example"
    limit = MAX_ATTEMPTS[Secret.RESET_LINK]

    responses = [request_link(email) for _ in range(limit + 1)]

    assert [response.status_code for response in responses] == [302] * limit + [429]
    assert 0 < int(responses[-1]["Retry-After"]) <= MAX_WAIT_S
    assert mail_requested_links(now=timezone.now()) == limit


def test_requests_of_others_do_not_throttle_a_known_browser(olga: Person) -> None:
    browser = signed_in(olga)
    browser.client.post("/sign-out")
    browser.client.defaults["REMOTE_ADDR"] = "10.200.0.11"  # not the known network of the sign-in
    spend_attempts(olga.email, Secret.RESET_LINK)

    assert request_link(olga.email, browser.client).status_code == 302


def test_one_network_is_throttled_over_all_accounts() -> None:
    client = fresh_client()

    statuses = [
        request_link(f"{secrets.token_hex(4)}@nobody.example", client).status_code
        for _ in range(MAX_TRIES_OF_NETWORK + 1)
    ]

    assert statuses == [302] * MAX_TRIES_OF_NETWORK + [429]


@pytest.mark.parametrize(
    "email",
    ["", "olga", "\0@x.example", f"{'x' * 10_240}@x.example"],
    ids=["empty", "no domain", "null", "long"],
)
def test_a_malformed_address_is_refused(email: str) -> None:
    response = request_link(email)

    assert response.status_code == 400
    assert mail_requested_links(now=timezone.now()) == 0


def test_users_of_single_sign_on_are_told_to_use_it(owner: Person) -> None:
    request_link(owner.email)
    mail_requested_links(now=timezone.now())

    (message,) = mail.outbox
    assert "Your tenant requires single sign-on" in message.body
    assert "/reset-password/" not in message.body


def test_a_link_does_not_bypass_single_sign_on(owner: Person) -> None:
    link = ResetLink.for_user(find_user_row(owner))

    assert is_unusable(f"/reset-password/{link.user_id}/{link.token}")


def test_an_account_without_a_password_can_set_one(olga: Person) -> None:
    user = find_user_row(olga)
    user.set_unusable_password()
    user.save()

    open_link(mailed_link(olga)).post("/reset-password", {"password": NEW_PASSWORD})

    assert can_sign_in(olga, NEW_PASSWORD)


def test_the_queue_contains_no_readable_address_and_expires(olga: Person) -> None:
    request_link(olga.email)

    (queued,) = redis_connection.connect_to_redis().lrange(QUEUE, 0, -1)

    assert olga.email.encode() not in queued
    assert redis_connection.connect_to_redis().ttl(QUEUE) > 0


def test_a_request_that_waited_too_long_is_dropped(olga: Person) -> None:
    over_an_hour_ago = timezone.now() - timedelta(minutes=61)
    enqueue_reset_request(email=olga.email, now=over_an_hour_ago)

    assert mail_requested_links(now=timezone.now()) == 1
    assert mail.outbox == []


def test_a_request_that_cannot_be_read_does_not_stop_the_others(olga: Person) -> None:
    redis_connection.connect_to_redis().lpush(QUEUE, b"not ours")
    request_link(olga.email)

    mail_requested_links(now=timezone.now())

    assert [message.to for message in mail.outbox] == [[olga.email]]


class UnavailableMailServer(EmailBackend):
    def send_messages(self, messages: object) -> int:
        raise smtplib.SMTPServerDisconnected("planted")


def test_a_run_ends_after_an_email_that_the_mail_server_did_not_accept(
    olga: Person, settings: LazySettings
) -> None:
    """Otherwise, a mail server that does not respond would delay the worker for many e-mails."""
    settings.EMAIL_BACKEND = f"{__name__}.UnavailableMailServer"
    request_link(olga.email)
    request_link(olga.email)

    # Each of the first two runs takes one of the two requests.
    assert [mail_requested_links(now=timezone.now()) for _ in range(3)] == [1, 1, 0]


def test_an_operator_mails_a_link(companies: list[Company], olga: Person) -> None:
    call_command("reset_password", olga.email, reason="Ticket 4711")

    (message,) = mail.outbox
    assert message.to == [olga.email]
    assert "An operator" in message.body
    for company in companies:
        (entry,) = list_password_entries(company)
        assert (entry.action, entry.reason) == ("password.reset_link_sent", "Ticket 4711")
        assert entry.target == f"user:{olga.user_id}"
    match = re.search(r"/reset-password/\S+", str(message.body))
    assert match is not None
    response = open_link(match[0]).post("/reset-password", {"password": NEW_PASSWORD})
    assert response.status_code == 302


def test_an_operator_is_told_why_no_link_was_sent(
    olga: Person, owner: Person, settings: LazySettings
) -> None:
    with pytest.raises(CommandError, match="no active account"):
        call_command("reset_password", "nobody@nobody.example")
    with pytest.raises(CommandError, match="single sign-on"):
        call_command("reset_password", owner.email)
    settings.EMAIL_BACKEND = f"{__name__}.UnavailableMailServer"
    with pytest.raises(CommandError, match="did not accept"):
        call_command("reset_password", olga.email)
