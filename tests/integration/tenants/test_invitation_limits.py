"""A tenant's invitations are limited, in total and to one address, also in parallel requests."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from tenants.base.errors import Forbidden, LimitReached
from tenants.base.permissions import Role
from tenants.identity.invitations.allowance import get_allowance
from tenants.identity.invitations.operations import create_invitation, revoke_invitation
from tests.fixtures.companies import Company, make_company
from tests.fixtures.users import Mailbox, make_colleague, send_invitation

MAX_A_DAY = 4
MAX_FOR_ADDRESS = 2


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture(autouse=True)
def _low_limits() -> Iterator[None]:
    with override_settings(
        MAX_INVITATIONS_A_DAY=MAX_A_DAY, MAX_INVITATIONS_A_DAY_AND_ADDRESS=MAX_FOR_ADDRESS
    ):
        yield


def use_up_limit(company: Company, mailbox: Mailbox | None = None) -> None:
    for number in range(MAX_A_DAY):
        send_invitation(company, f"guest{number}@y.example", mailbox=mailbox)


def test_the_number_of_invitations_per_tenant_is_limited(company: Company) -> None:
    mailbox = Mailbox()
    use_up_limit(company, mailbox)

    with pytest.raises(LimitReached) as exc_info:
        send_invitation(company, "one-more@y.example", mailbox=mailbox)

    assert len(mailbox.mails) == MAX_A_DAY
    assert 86_000 < exc_info.value.retry_after_s <= 86_400  # a day, less the time of this test
    assert "4 invitations in the last 24 hours" in exc_info.value.message


def test_another_tenant_has_its_own_limit(company: Company) -> None:
    use_up_limit(company)
    other_company = make_company("hooli", {Role.OWNER: "hank"})

    send_invitation(other_company, "guest0@y.example")

    assert get_allowance(actor=other_company.platform, now=timezone.now()).num_left == MAX_A_DAY - 1


def test_the_number_of_invitations_per_address_is_limited(company: Company) -> None:
    mailbox = Mailbox()
    for email in ("eve@y.example", "EVE@y.example"):
        send_invitation(company, email, mailbox=mailbox)

    with pytest.raises(LimitReached, match="This address was sent 2 invitations"):
        send_invitation(company, "eve@y.example", mailbox=mailbox)

    assert len(mailbox.mails) == MAX_FOR_ADDRESS


def test_revoking_an_invitation_does_not_raise_the_allowance(company: Company) -> None:
    invitation = send_invitation(company, "guest@y.example")
    revoke_invitation(actor=company.platform, invitation_id=invitation.id, now=timezone.now())

    assert get_allowance(actor=company.platform, now=timezone.now()).num_left == MAX_A_DAY - 1


def test_a_day_later_invitations_can_be_sent_again(company: Company) -> None:
    use_up_limit(company)
    now = timezone.now()
    spent = get_allowance(actor=company.platform, now=now)
    assert spent.next_at is not None

    for at, num_left in ((spent.next_at - timedelta(seconds=1), 0), (spent.next_at, 1)):
        assert get_allowance(actor=company.platform, now=at).num_left == num_left

    create_invitation(
        actor=company.platform,
        email="one-more@y.example",
        role=Role.DEVELOPER,
        mailer=Mailbox(),
        now=spent.next_at,
    )


def test_parallel_requests_do_not_exceed_the_limit(company: Company) -> None:
    mailbox = Mailbox()

    def send(number: int) -> bool:
        try:
            send_invitation(company, f"guest{number}@y.example", mailbox=mailbox)
        except LimitReached:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(send, range(16)))

    assert sum(results) == len(mailbox.mails) == MAX_A_DAY


def test_reading_the_allowance_requires_permission_to_invite(company: Company) -> None:
    with pytest.raises(Forbidden):
        get_allowance(actor=make_colleague(company).actor, now=timezone.now())
